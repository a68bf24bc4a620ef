//! INTERSECT ALL and EXCEPT ALL: equal rows are numbered, so that the n-th one matches the n-th one of the other
//! side.

use datafusion::sql::sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier};
use types::SqlResult;

use super::expr::empty_query;
use super::scope::quoted;
use super::{Output, Resolver, from};

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
        let number = self.unique_column("row_number", &[left.1, right.1]);
        let numbered = SetExpr::SetOperation {
            op,
            set_quantifier: SetQuantifier::None,
            left: Box::new(self.number_duplicates(left.0, outputs, &number)?),
            right: Box::new(self.number_duplicates(right.0, right.1, &number)?),
        };
        let relation = self.unique_relation("rows");
        let items: Vec<String> = outputs
            .iter()
            .map(|output| format!("{0}.{1} AS {1}", quoted(&relation), quoted(&output.plan_name)))
            .collect();
        select_from(&items.join(", "), numbered, &relation)
    }

    fn number_duplicates(&mut self, body: SetExpr, outputs: &[Output], number: &str) -> SqlResult<SetExpr> {
        let relation = self.unique_relation("rows");
        let columns: Vec<String> =
            outputs.iter().map(|output| format!("{}.{}", quoted(&relation), quoted(&output.plan_name))).collect();
        let items: Vec<String> = columns
            .iter()
            .zip(outputs)
            .map(|(column, output)| format!("{column} AS {}", quoted(&output.plan_name)))
            .chain([format!("row_number() OVER (PARTITION BY {}) AS {}", columns.join(", "), quoted(number))])
            .collect();
        select_from(&items.join(", "), body, &relation)
    }
}

/// Builds `SELECT items FROM (body) AS relation`.
fn select_from(items: &str, body: SetExpr, relation: &str) -> SqlResult<SetExpr> {
    let rows = Query { body: Box::new(body), ..empty_query() };
    Ok(*from::select_from(items, rows, relation)?.body)
}
