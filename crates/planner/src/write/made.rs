//! Rows that a statement reads, made into what is to become of them.

use datafusion::common::{Column as ColumnReference, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use types::{ColumnId, SqlResult, SqlType};

use super::assign::assign;
use super::assigned::New;
use super::rows;
use super::target::Target;
use crate::bind::Binder;
use crate::bind::modification::reading;
use crate::planned::Action;
use crate::shard_table::{PLACE, ROW_ID};

/// The column that says what happens to a row.
pub(crate) const ACTION: &str = "__action";

/// Rows as `bind/modification.rs` reads them.
pub(super) struct Read<'a> {
    binder: &'a Binder<'a>,
    target: &'a Target,
    plan: LogicalPlan,
    others: usize,
    types: Vec<SqlType>,
}

impl<'a> Read<'a> {
    /// `plan` has `others` columns beside those of the target and the values.
    pub(super) fn new(binder: &'a Binder<'a>, target: &'a Target, plan: LogicalPlan, others: usize) -> SqlResult<Self> {
        let types = rows::column_types(&plan)?;
        Ok(Self { binder, target, plan, others, types })
    }

    /// What the column at `position` is then.
    ///
    /// # Errors
    /// `42804` for a value that the column does not take.
    pub(super) fn new_value(&self, position: usize, new: New) -> SqlResult<Expr> {
        let column = &self.target.table.columns[position];
        match new {
            New::Same => Ok(named(&reading::old(position))),
            New::Default => rows::default(self.binder, column),
            New::Value(at) => {
                let from = &self.types[2 + self.target.table.columns.len() + self.others + at];
                assign(named(&reading::value(at)), from, &column.name, &column.sql_type, self.binder.session())
            }
        }
    }

    /// The rows with `new` values in the target's columns, all with the same action.
    ///
    /// # Errors
    /// What is wrong with a CHECK.
    pub(super) fn with_action(self, action: Action, new: Vec<Expr>) -> SqlResult<LogicalPlan> {
        let of_action = Expr::Literal(ScalarValue::Int8(Some(action as i8)), None).alias(ACTION);
        let columns = &self.target.table.columns;
        let mut made = vec![of_action, named(ROW_ID), named(PLACE)];
        made.extend(new.into_iter().zip(columns).map(|(value, column)| value.alias(&column.name)));
        made.extend((0..columns.len()).map(|at| named(&reading::old(at))));
        made.extend((0..self.others).map(|at| named(&reading::other(at))));
        let made = rows::projection(made, self.plan)?;
        match action {
            Action::Delete | Action::Nothing => Ok(made),
            Action::Insert | Action::Update => rows::checked(self.binder, self.target, made),
        }
    }
}

/// The columns of a [`crate::ModifyPlan`] before those of RETURNING, with the old values of the columns at `old`.
pub(super) fn plan_columns(target: &Target, old: &[usize]) -> Vec<String> {
    let mut columns = vec![ACTION.to_owned(), ROW_ID.to_owned(), PLACE.to_owned()];
    columns.extend(target.column_names());
    columns.extend(old.iter().map(|at| reading::old(*at)));
    columns
}

/// Rows that are inserted, as RETURNING reads them: with NULLs for what was there before.
pub(super) fn inserted(target: &Target, rows: LogicalPlan) -> SqlResult<LogicalPlan> {
    let columns = &target.table.columns;
    let mut made: Vec<Expr> = columns.iter().map(|column| named(&column.name)).collect();
    for (at, column) in columns.iter().enumerate() {
        made.push(rows::null(&column.sql_type)?.alias(reading::old(at)));
    }
    rows::projection(made, rows)
}

pub(super) fn named(name: &str) -> Expr {
    Expr::Column(ColumnReference::new_unqualified(name))
}

/// Where in the table the columns of these ids are.
pub(super) fn positions_of(target: &Target, ids: &[ColumnId]) -> Vec<usize> {
    ids.iter().filter_map(|id| target.table.columns.iter().position(|column| column.id == *id)).collect()
}
