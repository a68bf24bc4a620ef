//! FETCH FIRST … WITH TIES: rows are ranked, so that peers of the last row are returned too.

use datafusion::sql::sqlparser::ast::{
    Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, TableFactor, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use types::{Condition, SqlError, SqlResult};

use super::expr::empty_query;
use super::scope::quoted;
use super::{Output, Resolver};

impl Resolver<'_> {
    /// Rewrites `query`, whose names are resolved, to return `count` rows and the peers of the last one.
    pub(super) fn with_ties(&mut self, query: &mut Query, count: Option<Expr>, outputs: &[Output]) -> SqlResult<()> {
        let Some(order_by) = query.order_by.take() else {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            return Err(SqlError::new(Condition::SyntaxError, message));
        };
        let offset = match query.limit_clause.take() {
            Some(LimitClause::LimitOffset { offset: Some(offset), .. }) => parse_literal_count(&offset.value)?,
            _ => 0,
        };
        let Some(count) = count else { return Err(SqlError::internal("FETCH FIRST WITH TIES has no row count")) };
        let last = parse_literal_count(&count)?.saturating_add(offset);
        let keys = self.sort_keys(order_by, query.body.as_mut(), outputs)?;
        let [rank, number] = ["rank", "row_number"].map(|name| quoted(&self.unique_column(name, &[outputs])));
        let (rows, ranked) = (quoted(&self.unique_relation("rows")), quoted(&self.unique_relation("ranked")));
        let names: Vec<String> = outputs.iter().map(|output| quoted(&output.plan_name).to_string()).collect();
        let of = |relation: &dyn std::fmt::Display| -> String {
            names.iter().map(|name| format!("{relation}.{name} AS {name}, ")).collect()
        };
        let order: Vec<String> = keys.iter().map(|key| format!("{rows}.{key}")).collect();
        let order = order.join(", ");
        let inner = format!(
            "SELECT {}rank() OVER (ORDER BY {order}) AS {rank}, row_number() OVER (ORDER BY {order}) AS {number} \
             FROM (SELECT 1) AS {rows}",
            of(&rows)
        );
        let items = of(&ranked);
        let items = items.trim_end_matches(", ");
        let sql = format!(
            "SELECT {items} FROM ({inner}) AS {ranked} WHERE {ranked}.{rank} <= {last} AND {ranked}.{number} > {offset} \
             ORDER BY {ranked}.{number}"
        );
        let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(&sql).and_then(|mut parser| parser.parse_query());
        let mut outer = *parsed.map_err(|error| SqlError::internal(error.to_string()))?;
        let body = std::mem::replace(query.body.as_mut(), *empty_query().body);
        let place = single_subquery(outer.body.as_mut()).and_then(|inner| single_subquery(inner.body.as_mut()));
        let place = place
            .ok_or_else(|| SqlError::internal("the rewrite of FETCH FIRST WITH TIES produced no nested subqueries"))?;
        *place.body = body;
        query.body = outer.body;
        query.order_by = outer.order_by;
        Ok(())
    }

    /// Returns the sort keys as output columns with their options; a key that is not an output is added as one.
    fn sort_keys(&mut self, order_by: OrderBy, body: &mut SetExpr, outputs: &[Output]) -> SqlResult<Vec<String>> {
        let OrderByKind::Expressions(keys) = order_by.kind else {
            return Err(SqlError::unsupported("ORDER BY ALL"));
        };
        let mut shown = Vec::with_capacity(keys.len());
        for OrderByExpr { expr, options, .. } in keys {
            let column = match (&expr, &mut *body) {
                (Expr::Identifier(name), _) => name.clone(),
                (_, SetExpr::Select(select)) => {
                    let alias = quoted(&self.unique_column("sort_key", &[outputs]));
                    select.projection.push(SelectItem::ExprWithAlias { expr, alias: alias.clone() });
                    alias
                }
                _ => return Err(SqlError::internal("an ORDER BY key of a set operation is not an output column")),
            };
            shown.push(format!("{column}{options}"));
        }
        Ok(shown)
    }
}

/// Returns the only subquery in the FROM of a rewritten query.
fn single_subquery(body: &mut SetExpr) -> Option<&mut Query> {
    let SetExpr::Select(select) = body else { return None };
    match &mut select.from.first_mut()?.relation {
        TableFactor::Derived { subquery, .. } => Some(subquery),
        _ => None,
    }
}

/// Parses a count that is written as a number.
fn parse_literal_count(expr: &Expr) -> SqlResult<u64> {
    let written = match expr {
        Expr::Nested(inner) => return parse_literal_count(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    };
    written.ok_or_else(|| {
        SqlError::unsupported("FETCH FIRST WITH TIES with a row count or OFFSET that is not an integer literal")
    })
}
