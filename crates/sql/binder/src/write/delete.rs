//! Planning of DELETE.

use std::sync::Arc;

use syntax::statement::Delete;
use types::{SqlResult, SqlType};

use super::new_rows::{RowsRead, plan_columns, positions_of};
use super::target::WriteTarget;
use super::{complete_rows, referential_actions};
use crate::bind::modification::{Modification, ModificationSource, ReturningRow, target_as_from_item};
use crate::bind::{Binder, resolved_types};
use crate::statement_plan::{Action, ModifyPlan};

/// Plans a DELETE. `declared` are the parameter types declared by the client.
///
/// # Errors
/// SQLSTATE 42P01 and 42703 for wrong names, 42501 without the privilege; errors of its expressions.
pub fn plan_delete(binder: &Binder<'_>, delete: &Delete, declared: &[Option<SqlType>]) -> SqlResult<ModifyPlan> {
    let target = WriteTarget::resolve(binder, &delete.target.name, "delete from")?;
    let changed = target.with_alias(delete.target.alias.as_ref());
    let mut from = vec![target_as_from_item(&changed)];
    from.extend(delete.using.iter().cloned());
    let bound = binder.resolve_modification(Modification {
        with: delete.with.as_ref(),
        target: changed,
        source: ModificationSource::From(from),
        condition: delete.condition.as_ref(),
        values: Vec::new(),
        merge: None,
        returning: delete.returning.as_ref(),
        returning_row: ReturningRow::Old,
    })?;
    let old = target.referenced_columns(binder);
    let columns = plan_columns(&target, &positions_of(&target, &old));
    let (mut input, returning) = binder.plan_modification(&bound, declared, &columns, |plan| {
        let nothing = target.table.columns.iter().map(|column| complete_rows::null_of_type(&column.sql_type));
        let nothing = nothing.collect::<SqlResult<Vec<_>>>()?;
        RowsRead::new(binder, &target, plan, bound.other_column_count)?.with_action(Action::Delete, nothing)
    })?;
    input.parameters = resolved_types(input.parameters.into_iter().map(Some).collect())?;
    let references = referential_actions::plan_referential_actions(binder, &target.table, &old)?;
    let (table, notices) = (Arc::clone(&target.table), Vec::new());
    Ok(ModifyPlan { table, input, old_columns: old, references, returning, command_tag: "DELETE", notices })
}
