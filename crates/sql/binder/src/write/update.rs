//! Planning of UPDATE.

use std::sync::Arc;

use syntax::statement::Update;
use types::{SqlResult, SqlType};

use super::assigned::Assigned;
use super::made::{Read, plan_columns, positions_of};
use super::references;
use super::target::Target;
use crate::bind::modification::{Clause, Kept, Modification, Source, first_of};
use crate::bind::{Binder, settled};
use crate::planned::{Action, ModifyPlan};

/// Plans an UPDATE. `declared` are the parameter types declared by the client.
///
/// # Errors
/// SQLSTATE 42P01 and 42703 for wrong names, 42601 for a column that is set twice, 42804 for a type without an
/// assignment cast, 42501 without the privilege; errors of its expressions.
pub fn update(binder: &Binder<'_>, update: &Update, declared: &[Option<SqlType>]) -> SqlResult<ModifyPlan> {
    let target = Target::of(binder, &update.target.name, "update")?;
    let changed = target.named(update.target.alias.as_ref());
    let mut declared = declared.to_vec();
    let assigned = Assigned::of(&target.table, &update.assignments, 0, &mut declared)?;
    let mut from = vec![first_of(&changed)];
    from.extend(update.from.iter().cloned());
    let bound = binder.modification(Modification {
        with: update.with.as_ref(),
        changed,
        source: Source::From(from),
        condition: update.condition.as_ref(),
        values: assigned.values.iter().map(|value| (value.clone(), Clause::Update)).collect(),
        returning: update.returning.as_ref(),
        kept: Kept::New,
    })?;
    let mut old = target.referenced_columns(binder);
    old.retain(|id| target.table.columns.iter().zip(0..).any(|(column, at)| column.id == *id && assigned.sets(at)));
    let columns = plan_columns(&target, &positions_of(&target, &old));
    let (mut input, returning) = binder.modified(&bound, &declared, &columns, |plan| {
        let read = Read::new(binder, &target, plan, bound.others)?;
        let new = assigned.columns.iter().enumerate().map(|(at, new)| read.new_value(at, *new));
        let new = new.collect::<SqlResult<Vec<_>>>()?;
        read.with_action(Action::Update, new)
    })?;
    input.parameters = settled(input.parameters.into_iter().map(Some).collect())?;
    let references = references::plans(binder, &target.table, &old)?;
    let (table, notices) = (Arc::clone(&target.table), Vec::new());
    Ok(ModifyPlan { table, input, old, references, returning, tag: "UPDATE", notices })
}
