//! SET clauses: the new values of columns.

use catalog::Table;
use datafusion::sql::sqlparser::ast::{Expr, Query};
use syntax::statement::{AssignedValue, Assignment, is_default};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::identity_values;
use super::insert_values::infer_parameter_type;
use crate::bind::modification::{Clause, RowColumn, ValueKind, WrittenValue};

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
    pub(super) values: Vec<AssignedExpr>,
}

/// Expression whose value is assigned to a column.
#[derive(Debug, Clone)]
pub(super) struct AssignedExpr {
    pub(super) expr: Expr,
    /// Column of the only row of `expr`, a query, if that row is assigned to several columns.
    pub(super) row_column: Option<RowColumn>,
}

impl AssignedExpr {
    /// Returns the value as one that a statement computes, in the scope of `clause`.
    pub(super) fn into_written(self, clause: Clause) -> WrittenValue {
        let kind = ValueKind { clause, hides_target: clause == Clause::MergeInsert, row_column: self.row_column };
        WrittenValue { expr: self.expr, kind }
    }
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
                let (value, row_column) = match &assignment.value {
                    AssignedValue::Single(value) => (Expr::clone(value), None),
                    AssignedValue::Row(values) => (values[at].clone(), None),
                    AssignedValue::Query(query) => {
                        let column = RowColumn { position: at, width: assignment.columns.len() };
                        (Expr::Subquery(Box::new(Query::clone(query))), Some(column).filter(|column| column.width != 1))
                    }
                };
                assigned.columns[position] = if is_default(&value) {
                    NewValue::Default
                } else {
                    identity_values::refuse_update(column)?;
                    infer_parameter_type(&value, &column.sql_type, parameters);
                    assigned.values.push(AssignedExpr { expr: value, row_column });
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
