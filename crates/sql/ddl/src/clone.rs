//! CREATE TABLE … CLONE and UNDROP TABLE: tables that share the rows of an existing or a dropped table.

use std::collections::HashSet;
use std::sync::Arc;

use binder::{Binder, DefinePlan, context_at_snapshot, time_travel_target};
use catalog::{Change, Column, ConstraintKind, Identity, Sequence, SequenceOwner, Table};
use datafusion::sql::sqlparser::ast::{ObjectName, TableVersion};
use session_context::{LastDrop, StatementContext};
use syntax::statement::CreateTable;
use system_catalog::nextval_default;
use types::{CommitTs, Condition, SqlError, SqlResult, TimeTravelTarget};

use super::constraint_name::{choose_sequence_name, is_relation};
use super::create_table::already_exists_notice;
use super::name_resolution::{self, ResolvedRelation};

/// Creates a table with the columns, keys, checks, indexes and rows of another, at present or at an earlier snapshot.
/// Foreign keys are left out.
///
/// # Errors
/// `42P07` for an existing name, `42P01` or `42809` if the source is no table, `42501` for a table of another owner.
pub fn clone_table(
    binder: &Binder<'_>,
    create: &CreateTable,
    source: &ObjectName,
    version: Option<&TableVersion>,
) -> SqlResult<DefinePlan> {
    let context = binder.context();
    let name_resolution::CreationTarget { schema, name: new_name, temporary, .. } =
        name_resolution::creation_target(context, &create.name, false)?;
    if temporary {
        return Err(SqlError::unsupported("CLONE into a temporary table"));
    }
    let mut plan = DefinePlan { command_tag: "CREATE TABLE".to_owned(), ..DefinePlan::default() };
    if name_resolution::find_relation_in(&context.snapshot, &schema.name, new_name).is_some() {
        if !create.if_not_exists {
            return Err(name_resolution::duplicate_relation(new_name));
        }
        plan.notices.push(already_exists_notice(new_name));
        return Ok(plan);
    }
    let historical = match version {
        Some(version) => {
            let (past, pin) = context_at_snapshot(context, time_travel_target(binder, version)?)?;
            plan.snapshot_pins.push(pin);
            Some(past)
        }
        None => None,
    };
    let then = historical.as_deref().unwrap_or(context);
    let old = match name_resolution::resolve_relation(then, source)?
        .ok_or_else(|| name_resolution::undefined_relation(source))?
    {
        ResolvedRelation::Table(table) => table,
        ResolvedRelation::SystemTable => return Err(name_resolution::system_table_error(source)),
        _ => return Err(name_resolution::wrong_kind_error(name_resolution::split_name(context, source)?.1, "table")),
    };
    if !context.owns(old.owner) {
        let message = format!("permission denied for table {}", old.name);
        return Err(SqlError::new(Condition::InsufficientPrivilege, message));
    }
    if then.snapshot.schema(old.schema).is_some_and(|schema| schema.is_temporary()) {
        return Err(SqlError::unsupported("CLONE of a temporary table"));
    }
    let mut table = Table {
        oid: (context.new_oid)(),
        schema: schema.oid,
        name: new_name.to_owned(),
        owner: context.role.oid,
        ..Table::clone(&old)
    };
    rename_keys(context, &mut table, &old);
    let mut owned = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for position in 0..table.columns.len() {
        let mut column = table.columns[position].clone();
        let mine = then.snapshot.owned_sequences(old.oid);
        let Some(sequence) = mine.into_iter().find(|sequence| supplies_values_of(sequence, &old, &column)) else {
            continue;
        };
        let sequence = continue_sequence(context, sequence, &table, &mut column, &mut taken);
        table.columns[position] = column;
        let owner = SequenceOwner { table: table.oid, column: table.columns[position].id };
        owned.push(Change::PutSequence(Arc::new(Sequence { owned_by: Some(owner), ..sequence.clone() })));
        plan.changes.push(Change::PutSequence(Arc::new(sequence)));
    }
    plan.copied_table = historical.is_none().then_some(old.oid);
    let rows = Arc::clone(then.snapshot.rows(old.oid));
    let oid = table.oid;
    plan.changes.push(Change::PutTable(Arc::new(table)));
    plan.changes.extend(owned);
    plan.changes.push(Change::CloneRows { table: oid, rows });
    Ok(plan)
}

/// Renames the keys and indexes of a clone, which share a namespace with relations: the old table's name at the start
/// of a name is replaced by the new one, or else the new name is prefixed. Drops the foreign keys.
fn rename_keys(context: &StatementContext, table: &mut Table, old: &Table) {
    table.constraints.retain(|constraint| !matches!(constraint.kind, ConstraintKind::ForeignKey { .. }));
    let mut taken: HashSet<String> = HashSet::new();
    let probe = table.clone();
    let mut free = |name: &str| {
        let rest = name.strip_prefix(old.name.as_str()).unwrap_or(name);
        let rest = rest.strip_prefix('_').unwrap_or(rest);
        let base = format!("{}_{rest}", probe.name);
        let numbered = (1..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let chosen = names.find(|name| !taken.contains(name) && !is_relation(&context.snapshot, &probe, name));
        let chosen = chosen.expect("the numbered names are unlimited, so one of them is free");
        taken.insert(chosen.clone());
        chosen
    };
    for constraint in &mut table.constraints {
        constraint.oid = (context.new_oid)();
        if constraint.kind.is_key() {
            constraint.name = free(&constraint.name);
        }
    }
    for index in &mut table.indexes {
        index.oid = (context.new_oid)();
        index.name = free(&index.name);
    }
}

/// Whether the sequence is owned by the column and supplies its identity or `serial` values.
fn supplies_values_of(sequence: &Sequence, table: &Table, column: &Column) -> bool {
    let is_used = column.identity.is_some_and(|identity| identity.sequence == sequence.oid)
        || column.sequences.contains(&sequence.oid);
    is_used && sequence.owned_by == Some(SequenceOwner { table: table.oid, column: column.id })
}

/// Creates a sequence for the new table's column that continues at the old sequence's current position.
fn continue_sequence(
    context: &StatementContext,
    old: &Sequence,
    table: &Table,
    column: &mut Column,
    taken: &mut Vec<String>,
) -> Sequence {
    let oid = (context.new_oid)();
    let position = context.sequences.position(old);
    let next = if position.is_called { old.after(position.last_value) } else { Some(position.last_value) };
    let names: Vec<&str> = taken.iter().map(String::as_str).collect();
    let name = choose_sequence_name(&context.snapshot, table, &column.name, &names);
    taken.push(name.clone());
    match column.identity {
        Some(identity) => column.identity = Some(Identity { sequence: oid, ..identity }),
        None => {
            column.default = Some(nextval_default(oid));
            column.sequences = vec![oid];
        }
    }
    Sequence {
        oid,
        schema: table.schema,
        name,
        owner: table.owner,
        counter: oid,
        // An exhausted sequence stays at its last value.
        begins: next.unwrap_or(position.last_value),
        owned_by: None,
        comment: None,
        ..old.clone()
    }
}

/// Returns the drop that UNDROP TABLE of a name reverts; `None` if the table was not dropped or exists again.
///
/// # Errors
/// Errors of an invalid name, and errors of the storage.
pub fn last_drop(context: &StatementContext, written: &ObjectName) -> SqlResult<Option<LastDrop>> {
    let name_resolution::CreationTarget { schema, name, .. } =
        name_resolution::creation_target(context, written, false)?;
    let last = context.time_travel.last_drop(schema.oid, name)?;
    Ok(last.filter(|last| context.snapshot.table(last.table).is_none()))
}

/// Returns the last point in time at which the table existed.
#[must_use]
pub fn time_before_drop(drop: &LastDrop) -> TimeTravelTarget {
    TimeTravelTarget::Commit(CommitTs(drop.commit.0.saturating_sub(1)))
}

/// Restores the most recently dropped table of a name, as of before the drop, with its sequences.
///
/// # Errors
/// `42P01` if none was dropped within the retention period, `42P07` for an existing name, `42501` for a table of
/// another owner.
pub fn undrop_table(context: &StatementContext, written: &ObjectName) -> SqlResult<DefinePlan> {
    let name_resolution::CreationTarget { schema, name: table_name, temporary, .. } =
        name_resolution::creation_target(context, written, false)?;
    if temporary {
        return Err(SqlError::unsupported("UNDROP of a temporary table"));
    }
    if name_resolution::find_relation_in(&context.snapshot, &schema.name, table_name).is_some() {
        return Err(name_resolution::duplicate_relation(table_name));
    }
    let nothing = || {
        let message = format!("table \"{table_name}\" was not dropped");
        SqlError::new(Condition::UndefinedTable, message).with_detail("Or it was dropped before the retention period.")
    };
    let drop = context.inputs.last_drop.ok_or_else(nothing)?;
    let (past, pin) = context_at_snapshot(context, time_before_drop(&drop))?;
    let old = past.snapshot.table(drop.table).ok_or_else(nothing)?;
    name_resolution::check_owner(context, old.owner, "table", &old.name)?;
    let mut plan =
        DefinePlan { command_tag: "UNDROP TABLE".to_owned(), snapshot_pins: vec![pin], ..DefinePlan::default() };
    let mut table = Table::clone(old);
    if context.snapshot.role(table.owner).is_none() {
        table.owner = context.role.oid;
    }
    let names = table.constraints.iter().filter(|constraint| constraint.kind.is_key()).map(|key| &key.name);
    for name in names.chain(table.indexes.iter().map(|index| &index.name)) {
        if name_resolution::find_relation_in(&context.snapshot, &schema.name, name).is_some() {
            return Err(name_resolution::duplicate_relation(name));
        }
    }
    table.constraints.retain(|constraint| {
        let ConstraintKind::ForeignKey { references, .. } = &constraint.kind else { return true };
        let is_there = *references == old.oid || context.snapshot.table(*references).is_some();
        if !is_there {
            let message =
                format!("constraint \"{}\" is not restored: its referenced table does not exist", constraint.name);
            plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
        }
        is_there
    });
    let sequences: Vec<&Arc<Sequence>> = past.snapshot.owned_sequences(old.oid).collect();
    for needed in table.columns.iter().flat_map(|column| &column.sequences) {
        if context.snapshot.sequence(*needed).is_none() && sequences.iter().all(|own| own.oid != *needed) {
            return Err(SqlError::new(Condition::UndefinedTable, "the sequence of a column default does not exist"));
        }
    }
    let with_owner = |sequence: &Sequence| {
        let owner = if context.snapshot.role(sequence.owner).is_some() { sequence.owner } else { table.owner };
        Sequence { owner, ..sequence.clone() }
    };
    let free = sequences.iter().map(|sequence| Sequence { owned_by: None, ..with_owner(sequence) });
    plan.changes.extend(free.map(|sequence| Change::PutSequence(Arc::new(sequence))));
    let owned: Vec<Change> =
        sequences.iter().map(|sequence| Change::PutSequence(Arc::new(with_owner(sequence)))).collect();
    plan.changes.push(Change::PutTable(Arc::new(table)));
    plan.changes.extend(owned);
    plan.changes.push(Change::CloneRows { table: old.oid, rows: Arc::clone(past.snapshot.rows(old.oid)) });
    Ok(plan)
}
