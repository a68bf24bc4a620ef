//! INTERSECT ALL and EXCEPT ALL: equal rows are numbered, so that the n-th one matches the n-th one of the other
//! side.

use datafusion::sql::sqlparser::ast::{SetExpr, SetOperator, SetQuantifier, TableFactor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use types::{SqlError, SqlResult};

use super::scope::quoted;
use super::{Output, Resolver};

impl Resolver<'_> {
    /// Builds the operation over numbered rows, and removes the numbers. Both sides are resolved, with the outputs of
    /// the second elements.
    pub(super) fn build_multiset_operation(
        &mut self,
        op: SetOperator,
        left: (SetExpr, &[Output]),
        right: (SetExpr, &[Output]),
    ) -> SqlResult<SetExpr> {
        let outputs = left.1;
        let numbered = SetExpr::SetOperation {
            op,
            set_quantifier: SetQuantifier::None,
            left: Box::new(self.number_duplicates(left.0, outputs)?),
            right: Box::new(self.number_duplicates(right.0, right.1)?),
        };
        let relation = self.unique_relation("rows");
        let items: Vec<String> = outputs
            .iter()
            .map(|output| format!("{0}.{1} AS {1}", quoted(&relation), quoted(&output.plan_name)))
            .collect();
        select_from(&items.join(", "), numbered, &relation)
    }

    fn number_duplicates(&mut self, body: SetExpr, outputs: &[Output]) -> SqlResult<SetExpr> {
        let relation = self.unique_relation("rows");
        let columns: Vec<String> =
            outputs.iter().map(|output| format!("{}.{}", quoted(&relation), quoted(&output.plan_name))).collect();
        let items: Vec<String> = columns
            .iter()
            .zip(outputs)
            .map(|(column, output)| format!("{column} AS {}", quoted(&output.plan_name)))
            .chain([format!("row_number() OVER (PARTITION BY {}) AS {ROW_NUMBER_COLUMN}", columns.join(", "))])
            .collect();
        select_from(&items.join(", "), body, &relation)
    }
}

/// Column of row numbers; no identifier of a client equals it.
const ROW_NUMBER_COLUMN: &str = "\"row_number\u{1}\"";

/// Builds `SELECT items FROM (body) AS relation`.
fn select_from(items: &str, body: SetExpr, relation: &str) -> SqlResult<SetExpr> {
    let sql = format!("SELECT {items} FROM (SELECT 1) AS {}", quoted(relation));
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&sql).and_then(|mut parser| parser.parse_query());
    let mut outer = *parsed.map_err(|error| SqlError::internal(error.to_string()))?.body;
    if let SetExpr::Select(select) = &mut outer
        && let Some(table) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut table.relation
    {
        *subquery.body = body;
    }
    Ok(outer)
}
