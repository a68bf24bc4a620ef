//! Planning of UPDATE.

use std::sync::Arc;

use syntax::statement::Update;
use types::{SqlResult, SqlType};

use super::new_rows::{RowsRead, plan_columns, positions_of};
use super::referential_actions;
use super::set_clause::SetClause;
use super::target::WriteTarget;
use crate::bind::modification::{Clause, Modification, ModificationSource, ReturningRow, target_as_from_item};
use crate::bind::{Binder, resolved_types};
use crate::statement_plan::{Action, ModifyPlan};

/// Plans an UPDATE. `declared` are the parameter types declared by the client.
///
/// # Errors
/// SQLSTATE 42P01 and 42703 for wrong names, 42601 for a column that is set twice, 42804 for a type without an
/// assignment cast, 42501 without the privilege; errors of its expressions.
pub fn plan_update(binder: &Binder<'_>, update: &Update, declared: &[Option<SqlType>]) -> SqlResult<ModifyPlan> {
    let target = WriteTarget::resolve(binder, &update.target.name, "update")?;
    let changed = target.with_alias(update.target.alias.as_ref());
    let mut declared = declared.to_vec();
    let assigned = SetClause::resolve(&target.table, &update.assignments, 0, &mut declared)?;
    let mut from = vec![target_as_from_item(&changed)];
    from.extend(update.from.iter().cloned());
    let bound = binder.resolve_modification(Modification {
        with: update.with.as_ref(),
        target: changed,
        source: ModificationSource::From(from),
        condition: update.condition.as_ref(),
        values: assigned.values.iter().cloned().map(|value| value.into_written(Clause::Update)).collect(),
        merge: None,
        returning: update.returning.as_ref(),
        returning_row: ReturningRow::New,
    })?;
    let mut old = target.referenced_columns(binder);
    old.retain(|id| target.table.columns.iter().zip(0..).any(|(column, at)| column.id == *id && assigned.sets(at)));
    let columns = plan_columns(&target, &positions_of(&target, &old));
    let (mut input, returning) = binder.plan_modification(&bound, &declared, &columns, |plan| {
        let read = RowsRead::new(binder, &target, plan, bound.other_column_count)?;
        let new = assigned.columns.iter().enumerate().map(|(at, new)| read.new_value(at, *new));
        let new = new.collect::<SqlResult<Vec<_>>>()?;
        read.with_action(Action::Update, new)
    })?;
    input.parameters = resolved_types(input.parameters.into_iter().map(Some).collect())?;
    let references = referential_actions::plan_referential_actions(binder, &target.table, &old)?;
    let (table, notices) = (Arc::clone(&target.table), Vec::new());
    Ok(ModifyPlan { table, input, old_columns: old, references, returning, command_tag: "UPDATE", notices })
}
