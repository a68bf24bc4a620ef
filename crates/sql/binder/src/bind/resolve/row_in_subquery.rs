//! `(a, b) IN (SELECT …)`: the query becomes a relation whose columns the fields are compared with.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CaseWhen, Expr, Query, SetExpr, Value};
use types::{Condition, SqlError, SqlResult};

use super::scope::column_expr;
use super::{Output, Resolver, from};
use crate::rewrite::row_comparison::{joined, negated_if};

/// Handling of NULL by a membership test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NullHandling {
    /// The result is NULL if no row is equal and one may be.
    Distinguish,
    /// In WHERE, where NULL counts as false: the test becomes a join.
    CountAsFalse,
}

impl Resolver<'_> {
    /// Builds the test whether `query`, resolved with these outputs, has a row equal to `fields`, resolved.
    ///
    /// # Errors
    /// SQLSTATE 42601 if the query has another number of columns.
    pub(super) fn build_row_membership(
        &mut self,
        fields: &[Expr],
        query: &Query,
        outputs: &[Output],
        is_negated: bool,
        nulls: NullHandling,
    ) -> SqlResult<Expr> {
        if fields.len() != outputs.len() {
            let many = if fields.len() < outputs.len() { "many" } else { "few" };
            return Err(SqlError::new(Condition::SyntaxError, format!("subquery has too {many} columns")));
        }
        let mut exists = |condition: fn(Expr) -> Expr| -> SqlResult<Expr> {
            let relation = self.unique_relation("row");
            let equal = fields.iter().zip(outputs).map(|(field, output)| Expr::BinaryOp {
                left: Box::new(field.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(column_expr(&relation, &output.plan_name)),
            });
            let mut rows = from::select_from("1 AS one", query.clone(), &relation)?;
            if let SetExpr::Select(select) = rows.body.as_mut() {
                select.selection = Some(condition(joined(equal, &BinaryOperator::And)));
            }
            Ok(Expr::Exists { subquery: Box::new(rows), negated: false })
        };
        if nulls == NullHandling::CountAsFalse {
            return exists(|equal| equal);
        }
        // True if a row is equal, unknown if one may be, else false.
        let when = |condition: Expr, value: Value| CaseWhen { condition, result: Expr::Value(value.into()) };
        let test = Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![
                when(exists(|equal| equal)?, Value::Boolean(true)),
                when(exists(|equal| Expr::IsNull(Box::new(equal)))?, Value::Null),
            ],
            else_result: Some(Box::new(Expr::Value(Value::Boolean(false).into()))),
        };
        Ok(negated_if(is_negated, test))
    }
}

/// Returns whether an expression is `row IN (query)`.
pub(super) fn is_row_membership(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery { expr: value, .. } if matches!(value.as_ref(), Expr::Tuple(_)))
}
