//! SET clauses: the new values of columns.

use catalog::Table;
use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, TableFactor};
use syntax::expr_of;
use syntax::statement::{AssignedValue, Assignment, is_default};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::identity;
use super::values::infer;
use crate::bind::plan_names::ASSIGNED;

/// New value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum New {
    /// Unchanged value.
    Same,
    /// NULL.
    Null,
    /// Default of the column.
    Default,
    /// Value with this number.
    Value(usize),
}

/// Resolved SET clause.
pub(super) struct Assigned {
    /// New values of all columns of the table, in order.
    pub(super) columns: Vec<New>,
    pub(super) values: Vec<Expr>,
}

impl Assigned {
    /// Resolves `assignments`. A parameter that is assigned by itself gets its column's type in `parameters`. Values
    /// are numbered from `first`.
    ///
    /// # Errors
    /// SQLSTATE 42703 for a missing column, 42601 for a column that is set twice, 428C9 for one that is GENERATED
    /// ALWAYS.
    pub(super) fn of(
        table: &Table,
        assignments: &[Assignment],
        first: usize,
        parameters: &mut Vec<Option<SqlType>>,
    ) -> SqlResult<Self> {
        let mut assigned = Self { columns: vec![New::Same; table.columns.len()], values: Vec::new() };
        for assignment in assignments {
            for (at, name) in assignment.columns.iter().enumerate() {
                let (position, column) = table.column_by_name(&name.value).ok_or_else(|| {
                    let message = format!("column \"{}\" of relation \"{}\" does not exist", name.value, table.name);
                    SqlError::new(Condition::UndefinedColumn, message)
                })?;
                if assigned.columns[position] != New::Same {
                    let message = format!("multiple assignments to same column \"{}\"", name.value);
                    return Err(SqlError::new(Condition::SyntaxError, message));
                }
                let value = match &assignment.value {
                    AssignedValue::One(value) => Expr::clone(value),
                    AssignedValue::Row(values) => values[at].clone(),
                    AssignedValue::Query(query) => field(query, at, assignment.columns.len())?,
                };
                assigned.columns[position] = if is_default(&value) {
                    New::Default
                } else {
                    identity::refuse_update(column)?;
                    infer(&value, &column.sql_type, parameters);
                    assigned.values.push(value);
                    New::Value(first + assigned.values.len() - 1)
                };
            }
        }
        Ok(assigned)
    }

    /// Returns whether the column at this position is set.
    pub(super) fn sets(&self, position: usize) -> bool {
        self.columns[position] != New::Same
    }
}

/// Returns one of the `width` columns of a query's only row, as a scalar subquery.
fn field(query: &Query, at: usize, width: usize) -> SqlResult<Expr> {
    if width == 1 {
        return Ok(Expr::Subquery(Box::new(query.clone())));
    }
    let names: Vec<String> = (1..=width).map(|number| format!("\"c{number}\"")).collect();
    let text = format!("(SELECT {} FROM (SELECT 1) AS \"{ASSIGNED}\" ({}))", names[at], names.join(", "));
    let mut wrapped = expr_of(&text)?;
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
