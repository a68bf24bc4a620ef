//! SET clauses: the new values of columns.

use catalog::Table;
use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, TableFactor};
use syntax::parse_stored_expr;
use syntax::statement::{AssignedValue, Assignment, is_default};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::identity;
use super::values::infer_parameter_type;
use crate::bind::plan_names::ASSIGNMENT_QUERY;

/// New value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewValue {
    /// Unchanged value.
    Unchanged,
    /// NULL.
    Null,
    /// Default of the column.
    Default,
    /// Value with this number.
    Value(usize),
}

/// Resolved SET clause.
pub(super) struct SetClause {
    /// New values of all columns of the table, in order.
    pub(super) columns: Vec<NewValue>,
    pub(super) values: Vec<Expr>,
}

impl SetClause {
    /// Resolves `assignments`. A parameter that is assigned by itself gets its column's type in `parameters`. Values
    /// are numbered from `first`.
    ///
    /// # Errors
    /// SQLSTATE 42703 for a missing column, 42601 for a column that is set twice, 428C9 for one that is GENERATED
    /// ALWAYS.
    pub(super) fn resolve(
        table: &Table,
        assignments: &[Assignment],
        first: usize,
        parameters: &mut Vec<Option<SqlType>>,
    ) -> SqlResult<Self> {
        let mut assigned = Self { columns: vec![NewValue::Unchanged; table.columns.len()], values: Vec::new() };
        for assignment in assignments {
            for (at, name) in assignment.columns.iter().enumerate() {
                let (position, column) = table.column_by_name(&name.value).ok_or_else(|| {
                    let message = format!("column \"{}\" of relation \"{}\" does not exist", name.value, table.name);
                    SqlError::new(Condition::UndefinedColumn, message)
                })?;
                if assigned.columns[position] != NewValue::Unchanged {
                    let message = format!("multiple assignments to same column \"{}\"", name.value);
                    return Err(SqlError::new(Condition::SyntaxError, message));
                }
                let value = match &assignment.value {
                    AssignedValue::Single(value) => Expr::clone(value),
                    AssignedValue::Row(values) => values[at].clone(),
                    AssignedValue::Query(query) => assigned_column(query, at, assignment.columns.len())?,
                };
                assigned.columns[position] = if is_default(&value) {
                    NewValue::Default
                } else {
                    identity::refuse_update(column)?;
                    infer_parameter_type(&value, &column.sql_type, parameters);
                    assigned.values.push(value);
                    NewValue::Value(first + assigned.values.len() - 1)
                };
            }
        }
        Ok(assigned)
    }

    /// Returns whether the column at this position is set.
    pub(super) fn sets(&self, position: usize) -> bool {
        self.columns[position] != NewValue::Unchanged
    }
}

/// Returns one of the `width` columns of a query's only row, as a scalar subquery.
fn assigned_column(query: &Query, at: usize, width: usize) -> SqlResult<Expr> {
    if width == 1 {
        return Ok(Expr::Subquery(Box::new(query.clone())));
    }
    let names: Vec<String> = (1..=width).map(|number| format!("\"c{number}\"")).collect();
    let text = format!("(SELECT {} FROM (SELECT 1) AS \"{ASSIGNMENT_QUERY}\" ({}))", names[at], names.join(", "));
    let mut wrapped = parse_stored_expr(&text)?;
    if let Expr::Subquery(outer) = &mut wrapped
        && let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(table) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut table.relation
    {
        **subquery = query.clone();
        return Ok(wrapped);
    }
    Err(SqlError::internal("wrapped assignment query does not parse as a subquery"))
}
