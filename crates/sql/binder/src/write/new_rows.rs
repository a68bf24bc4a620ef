//! Computes the new rows of a statement from the rows that it reads.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column as ColumnReference, ScalarValue};
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use functions::error::from_datafusion;
use plan::{ROW_ID, ROW_POSITION};
use types::{ColumnId, SqlResult, SqlType};

use super::assignment_cast::cast_for_assignment;
use super::complete_rows;
use super::set_clause::NewValue;
use super::target::WriteTarget;
use crate::bind::Binder;
use crate::bind::modification_columns::ModificationColumns;
use crate::semantics::with_type_metadata;
use crate::statement_plan::Action;

/// Rows read as planned by `bind/modification.rs`.
pub(super) struct RowsRead<'a> {
    binder: &'a Binder<'a>,
    target: &'a WriteTarget,
    names: ModificationColumns,
    plan: LogicalPlan,
    other_column_count: usize,
    types: Vec<SqlType>,
}

impl<'a> RowsRead<'a> {
    /// Wraps `plan`, which has `others` columns besides those of the target and the values.
    pub(super) fn new(
        binder: &'a Binder<'a>,
        target: &'a WriteTarget,
        plan: LogicalPlan,
        others: usize,
    ) -> SqlResult<Self> {
        let types = complete_rows::column_types(&plan)?;
        let names = ModificationColumns::for_table(&target.table);
        Ok(Self { binder, target, names, plan, other_column_count: others, types })
    }

    /// Returns the new value of the column at `position`.
    ///
    /// # Errors
    /// SQLSTATE 42804 for a value of a type without an assignment cast.
    pub(super) fn new_value(&self, position: usize, new: NewValue) -> SqlResult<Expr> {
        let column = &self.target.table.columns[position];
        match new {
            NewValue::Unchanged => Ok(column_ref(&self.names.old(position))),
            NewValue::Null => complete_rows::null_of_type(&column.sql_type),
            NewValue::Default => complete_rows::column_default(self.binder, column),
            NewValue::Value(at) => {
                let from = &self.types[2 + self.target.table.columns.len() + self.other_column_count + at];
                cast_for_assignment(
                    column_ref(&self.names.value(at)),
                    from,
                    &column.name,
                    &column.sql_type,
                    self.binder.session(),
                )
            }
        }
    }

    /// Computes rows with the values `new` in the target's columns and the same action for all.
    ///
    /// # Errors
    /// Errors of a CHECK.
    pub(super) fn with_action(self, action: Action, new: Vec<Expr>) -> SqlResult<LogicalPlan> {
        let names = self.names;
        let of_action = Expr::Literal(ScalarValue::Int8(Some(action as i8)), None).alias(names.action());
        let columns = &self.target.table.columns;
        let mut made = vec![of_action, column_ref(ROW_ID), column_ref(ROW_POSITION)];
        made.extend(new.into_iter().zip(columns).map(|(value, column)| value.alias(&column.name)));
        made.extend((0..columns.len()).map(|at| column_ref(&names.old(at))));
        made.extend((0..self.other_column_count).map(|at| column_ref(&names.other(at))));
        let made = complete_rows::build_projection(made, self.plan)?;
        match action {
            Action::Delete | Action::Nothing => Ok(made),
            Action::Insert | Action::Update => complete_rows::add_constraint_check(self.binder, self.target, made),
        }
    }
}

/// Actions and new column values of MERGE's clauses, by clause number.
#[derive(Default)]
pub(super) struct MergeClauses(Vec<(Action, Vec<NewValue>)>);

impl MergeClauses {
    pub(super) fn push(&mut self, action: Action, columns: Vec<NewValue>) {
        self.0.push((action, columns));
    }

    /// Returns whether a clause may change or delete existing values of the column at this position.
    pub(super) fn may_change(&self, position: usize) -> bool {
        self.0.iter().any(|(action, columns)| match action {
            Action::Delete => true,
            Action::Update => columns[position] != NewValue::Unchanged,
            Action::Nothing | Action::Insert => false,
        })
    }
}

impl RowsRead<'_> {
    /// Computes the new rows of MERGE: the first value of a row is the number of its clause, and rows without a
    /// clause are dropped.
    ///
    /// # Errors
    /// Those of [`RowsRead::new_value`]; errors of a CHECK.
    pub(super) fn apply_merge_clauses(mut self, clauses: &MergeClauses) -> SqlResult<LogicalPlan> {
        let names = self.names.clone();
        let action_number = names.merge_action_number();
        let which = || Box::new(column_ref(&names.value(0)));
        let filter = Filter::try_new(Expr::IsNotNull(which()), Arc::new(self.plan.clone()));
        self.plan = LogicalPlan::Filter(filter.map_err(from_datafusion)?);
        let by_number = |values: Vec<Expr>| {
            let branches = values.into_iter().zip(0_i32..).map(|(value, number)| {
                (Box::new(Expr::Literal(ScalarValue::Int32(Some(number)), None)), Box::new(value))
            });
            Expr::Case(Case::new(Some(which()), branches.collect(), None))
        };
        let action = |action: &Action| Expr::Literal(ScalarValue::Int32(Some(*action as i32)), None);
        let actions = clauses.0.iter().map(|(it, _)| action(it)).collect();
        let columns = &self.target.table.columns;
        // SQL has no 8-bit integer, so CASE returns a 32-bit one.
        let done = by_number(actions);
        let narrow = Arc::new(Field::new("cast", DataType::Int8, true));
        let narrow = Expr::Cast(Cast::new_from_field(Box::new(done.clone()), narrow));
        let mut made = vec![
            narrow.alias(names.action()),
            column_ref(ROW_ID),
            column_ref(ROW_POSITION),
            done.alias(&action_number),
        ];
        for (at, column) in columns.iter().enumerate() {
            let values = clauses.0.iter().map(|(_, new)| self.new_value(at, new[at])).collect::<SqlResult<Vec<_>>>()?;
            made.push(with_type_metadata(by_number(values), &column.sql_type).alias(&column.name));
        }
        made.extend((0..columns.len()).map(|at| column_ref(&names.old(at))));
        made.extend((0..self.other_column_count).map(|at| column_ref(&names.other(at))));
        let is_delete = || Box::new(column_ref(&action_number).eq(action(&Action::Delete)));
        let made = complete_rows::build_projection(made, self.plan)?;
        let made = complete_rows::add_constraint_check_unless(self.binder, self.target, made, Some(*is_delete()))?;
        let mut kept: Vec<Expr> = made.schema().columns().into_iter().map(Expr::Column).collect();
        for (at, column) in columns.iter().enumerate() {
            let branch = (is_delete(), Box::new(column_ref(&names.old(at))));
            let either = Expr::Case(Case::new(None, vec![branch], Some(Box::new(column_ref(&column.name)))));
            kept.push(with_type_metadata(either, &column.sql_type).alias(names.returning_row(at)));
        }
        let words = [(Action::Insert, "INSERT"), (Action::Update, "UPDATE"), (Action::Delete, "DELETE")];
        let word = |word: &str| Expr::Literal(ScalarValue::Utf8View(Some(word.to_owned())), None);
        let said = words.iter().map(|(it, said)| (Box::new(action(it)), Box::new(word(said)))).collect();
        let said = Expr::Case(Case::new(Some(Box::new(column_ref(&action_number))), said, None));
        kept.push(with_type_metadata(said, &SqlType::Text).alias(names.merge_action()));
        complete_rows::build_projection(kept, made)
    }
}

/// Returns the column names of a [`crate::ModifyPlan`] before those of RETURNING, with the old values of the columns
/// at the positions `old`.
pub(super) fn plan_columns(target: &WriteTarget, old: &[usize]) -> Vec<String> {
    let names = ModificationColumns::for_table(&target.table);
    let mut columns = vec![names.action(), ROW_ID.to_owned(), ROW_POSITION.to_owned()];
    columns.extend(target.column_names());
    columns.extend(old.iter().map(|at| names.old(*at)));
    columns
}

/// Adds NULLs as the old values of inserted rows, for RETURNING.
pub(super) fn with_null_old_values(target: &WriteTarget, rows: LogicalPlan) -> SqlResult<LogicalPlan> {
    let names = ModificationColumns::for_table(&target.table);
    let columns = &target.table.columns;
    let mut made: Vec<Expr> = columns.iter().map(|column| column_ref(&column.name)).collect();
    for (at, column) in columns.iter().enumerate() {
        made.push(complete_rows::null_of_type(&column.sql_type)?.alias(names.old(at)));
    }
    complete_rows::build_projection(made, rows)
}

pub(super) fn column_ref(name: &str) -> Expr {
    Expr::Column(ColumnReference::new_unqualified(name))
}

/// Returns the positions of the columns with these IDs.
pub(super) fn positions_of(target: &WriteTarget, ids: &[ColumnId]) -> Vec<usize> {
    ids.iter().filter_map(|id| target.table.columns.iter().position(|column| column.id == *id)).collect()
}
