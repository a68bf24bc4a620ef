//! Planning of DELETE.

use std::sync::Arc;

use syntax::statement::Delete;
use types::{SqlResult, SqlType};

use super::made::{Read, plan_columns, positions_of};
use super::target::Target;
use super::{references, rows};
use crate::bind::modification::{Kept, Modification, Source, first_of};
use crate::bind::{Binder, settled};
use crate::planned::{Action, ModifyPlan};

/// Plans a DELETE. `declared` are the parameter types declared by the client.
///
/// # Errors
/// SQLSTATE 42P01 and 42703 for wrong names, 42501 without the privilege; errors of its expressions.
pub fn delete(binder: &Binder<'_>, delete: &Delete, declared: &[Option<SqlType>]) -> SqlResult<ModifyPlan> {
    let target = Target::of(binder, &delete.target.name, "delete from")?;
    let changed = target.named(delete.target.alias.as_ref());
    let mut from = vec![first_of(&changed)];
    from.extend(delete.using.iter().cloned());
    let bound = binder.modification(Modification {
        with: delete.with.as_ref(),
        changed,
        source: Source::From(from),
        condition: delete.condition.as_ref(),
        values: Vec::new(),
        returning: delete.returning.as_ref(),
        kept: Kept::Old,
    })?;
    let old = target.referenced_columns(binder);
    let columns = plan_columns(&target, &positions_of(&target, &old));
    let (mut input, returning) = binder.modified(&bound, declared, &columns, |plan| {
        let nothing = target.table.columns.iter().map(|column| rows::null(&column.sql_type));
        let nothing = nothing.collect::<SqlResult<Vec<_>>>()?;
        Read::new(binder, &target, plan, bound.others)?.with_action(Action::Delete, nothing)
    })?;
    input.parameters = settled(input.parameters.into_iter().map(Some).collect())?;
    let references = references::plans(binder, &target.table, &old)?;
    let (table, notices) = (Arc::clone(&target.table), Vec::new());
    Ok(ModifyPlan { table, input, old, references, returning, tag: "DELETE", notices })
}
