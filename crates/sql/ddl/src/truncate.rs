//! TRUNCATE.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{CatalogState, Change, ConstraintKind, Sequence, Table};
use session_context::StatementContext;
use syntax::statement::Truncate;
use types::{Condition, Oid, SqlError, SqlResult};

use super::name_resolution;

/// Removes all rows from the tables, and with CASCADE from tables with foreign keys to them.
///
/// # Errors
/// `0A000` if another table has a foreign key to one of them, and errors of the names.
pub fn truncate(context: &StatementContext, truncate: &Truncate) -> SqlResult<DefinePlan> {
    let mut plan = DefinePlan { command_tag: "TRUNCATE TABLE".to_owned(), ..DefinePlan::default() };
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for name in &truncate.names {
        let table = find_truncatable(context, name)?;
        if tables.iter().all(|known| known.oid != table.oid) {
            tables.push(table);
        }
    }
    while let Some((referring, referred)) = find_outside_reference(&context.snapshot, &tables) {
        if !truncate.cascade {
            let detail = format!("Table \"{}\" references \"{}\".", referring.name, referred.name);
            let hint = format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", referring.name);
            let message = "cannot truncate a table referenced in a foreign key constraint";
            return Err(SqlError::new(Condition::FeatureNotSupported, message).with_detail(detail).with_hint(hint));
        }
        check_can_truncate(context, &referring)?;
        let message = format!("truncate cascades to table \"{}\"", referring.name);
        plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
        tables.push(referring);
    }
    plan.changes = tables.iter().map(|table| Change::RemoveAllRows { table: table.oid }).collect();
    if truncate.restart_identity {
        let owned = tables.iter().flat_map(|table| context.snapshot.owned_sequences(table.oid));
        plan.changes.extend(owned.map(|sequence| {
            Change::PutSequence(Arc::new(Sequence {
                counter: (context.new_oid)(),
                begins: sequence.start,
                ..Sequence::clone(sequence)
            }))
        }));
    }
    Ok(plan)
}

fn find_truncatable(
    context: &StatementContext,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
) -> SqlResult<Arc<Table>> {
    match name_resolution::resolve_relation(context, name)?.ok_or_else(|| name_resolution::undefined_relation(name))? {
        name_resolution::ResolvedRelation::Table(table) => {
            check_can_truncate(context, &table)?;
            Ok(table)
        }
        name_resolution::ResolvedRelation::SystemTable => Err(name_resolution::system_table_error(name)),
        name_resolution::ResolvedRelation::External(_)
        | name_resolution::ResolvedRelation::View(_)
        | name_resolution::ResolvedRelation::Sequence(_)
        | name_resolution::ResolvedRelation::Key
        | name_resolution::ResolvedRelation::Index(..) => {
            Err(name_resolution::wrong_kind_error(name_resolution::split_name(context, name)?.1, "table"))
        }
    }
}

fn check_can_truncate(context: &StatementContext, table: &Table) -> SqlResult<()> {
    if context.owns(table.owner) {
        return Ok(());
    }
    let message = format!("permission denied for table {}", table.name);
    Err(SqlError::new(Condition::InsufficientPrivilege, message))
}

/// Finds a table outside `tables` with a foreign key to one of them, and that one.
fn find_outside_reference<'t>(state: &CatalogState, tables: &'t [Arc<Table>]) -> Option<(Arc<Table>, &'t Table)> {
    let named = |oid: Oid| tables.iter().find(|table| table.oid == oid);
    state.tables().filter(|table| named(table.oid).is_none()).find_map(|table| {
        let referred = table.constraints.iter().find_map(|constraint| match &constraint.kind {
            ConstraintKind::ForeignKey { references, .. } => named(*references),
            _ => None,
        })?;
        Some((Arc::clone(table), referred.as_ref()))
    })
}
