//! Conflicts between changes of definitions and whole tables that concurrent transactions make. Pure: compares two
//! states and the changes made to the earlier one.
//!
//! Changes of single rows are not checked here: statements detect those under the row's lock (`Transaction::find_row_fate`).
//!
//! States share what is unchanged between them: an object is unchanged between two states exactly if both hold the same
//! `Arc`.

use std::sync::Arc;

use catalog::{CatalogState, Change, Constraint, ConstraintKind, ObjectKind, Relation, Table};
use types::Oid;

#[cfg(test)]
mod tests;

/// Conflict that prevents a transaction from committing after another one that committed first.
#[derive(Debug, thiserror::Error)]
#[error("{kind} with id {oid} {reason}")]
pub struct Conflict {
    pub kind: ObjectKind,
    pub oid: Oid,
    #[source]
    pub reason: ConflictReason,
}

/// Kind of change that the other transaction made to the object.
#[derive(Debug, thiserror::Error)]
pub enum ConflictReason {
    #[error("was changed by a concurrent transaction")]
    Changed,
    #[error("was dropped by a concurrent transaction")]
    Dropped,
    #[error("was emptied by a concurrent transaction")]
    Emptied,
    #[error("received rows from a concurrent transaction")]
    RowsAdded,
    #[error("was changed by a concurrent transaction after it had been read")]
    ReadChanged,
    #[error("can no longer be changed after a concurrent transaction")]
    Refused(#[source] catalog::Error),
}

/// Applies `changes`, which were made to `base`, to the newer state `now`. Fails with the first conflict between them
/// and what happened since `base`. `visit` is called with each change and the state that it is about to be applied to.
pub(crate) fn rebase(
    base: &CatalogState,
    now: &CatalogState,
    changes: &[Change],
    mut visit: impl FnMut(&CatalogState, &Change),
) -> Result<CatalogState, Conflict> {
    if let Some(conflict) = changes.iter().find_map(|change| find_conflict(base, now, change)) {
        return Err(conflict);
    }
    let mut state = now.clone();
    for change in changes {
        visit(&state, change);
        state = state.apply(change).map_err(|refusal| {
            let (kind, oid) = target(change);
            Conflict { kind, oid, reason: ConflictReason::Refused(refusal) }
        })?;
    }
    Ok(state)
}

/// Returns the conflict between `change` and what happened between `base` and `now`, if there is one.
fn find_conflict(base: &CatalogState, now: &CatalogState, change: &Change) -> Option<Conflict> {
    let (kind, oid) = target(change);
    let reason = match change {
        Change::PutDatabase(_) => difference(Some(base.database()), Some(now.database())),
        Change::PutSchema(_) | Change::DropSchema(_) => difference(base.schema(oid), now.schema(oid)),
        Change::PutRole(_) | Change::DropRole(_) => difference(base.role(oid), now.role(oid)),
        Change::DropView(_) => difference(base.view(oid), now.view(oid)),
        Change::PutView(view) => {
            let changed = difference(base.view(oid), now.view(oid));
            changed.or_else(|| view.depends_on.iter().find_map(|&needed| relation_difference(base, now, needed)))
        }
        Change::PutSequence(_) | Change::DropSequence(_) => difference(base.sequence(oid), now.sequence(oid)),
        // Rows that others added are dropped with the table.
        Change::DropTable(_) => difference(base.table(oid), now.table(oid)),
        Change::PutTable(table) => difference(base.table(oid), now.table(oid)).or_else(|| {
            let tightened = base.table(oid).is_some_and(|old| is_stricter(old, table));
            if tightened { rows_difference(base, now, oid) } else { None }
        }),
        Change::RemoveAllRows { .. } => match (base.table(oid), now.table(oid)) {
            (Some(_), None) => Some(ConflictReason::Dropped),
            // The removed rows may be about to be loaded again in another form, and rows added meanwhile would be lost.
            _ => rows_difference(base, now, oid),
        },
        Change::AddShards { .. } => match (base.table(oid), now.table(oid)) {
            (Some(_), None) => Some(ConflictReason::Dropped),
            _ => rows_conflict(base, now, oid),
        },
        // No other transaction sees the table: this one has created it.
        Change::CloneRows { .. } => difference(base.table(oid), now.table(oid)),
        // Rows may have been added, changed or deleted meanwhile: applying the change to `now` takes them into account.
        Change::SealFreshRows { .. } | Change::Flush { .. } | Change::CompactShards { .. } => match now.table(oid) {
            None => Some(ConflictReason::Dropped),
            Some(_) if was_emptied(base, now, oid) => Some(ConflictReason::Emptied),
            Some(_) => None,
        },
    }?;
    Some(Conflict { kind, oid, reason })
}

/// Returns the object that a change is about.
fn target(change: &Change) -> (ObjectKind, Oid) {
    match change {
        Change::PutDatabase(database) => (ObjectKind::Database, database.oid),
        Change::PutSchema(schema) => (ObjectKind::Schema, schema.oid),
        Change::DropSchema(oid) => (ObjectKind::Schema, *oid),
        Change::PutTable(table) => (ObjectKind::Table, table.oid),
        Change::DropTable(oid) => (ObjectKind::Table, *oid),
        Change::PutView(view) => (ObjectKind::View, view.oid),
        Change::DropView(oid) => (ObjectKind::View, *oid),
        Change::PutSequence(sequence) => (ObjectKind::Sequence, sequence.oid),
        Change::DropSequence(oid) => (ObjectKind::Sequence, *oid),
        Change::PutRole(role) => (ObjectKind::Role, role.oid),
        Change::DropRole(oid) => (ObjectKind::Role, *oid),
        Change::AddShards { table, .. }
        | Change::RemoveAllRows { table }
        | Change::SealFreshRows { table }
        | Change::CloneRows { table, .. }
        | Change::Flush { table, .. }
        | Change::CompactShards { table, .. } => (ObjectKind::Table, *table),
    }
}

fn difference<T>(base: Option<&Arc<T>>, now: Option<&Arc<T>>) -> Option<ConflictReason> {
    match (base, now) {
        (None, None) => None,
        (Some(base), Some(now)) if Arc::ptr_eq(base, now) => None,
        (Some(_), None) => Some(ConflictReason::Dropped),
        (_, Some(_)) => Some(ConflictReason::Changed),
    }
}

fn relation_difference(base: &CatalogState, now: &CatalogState, oid: Oid) -> Option<ConflictReason> {
    match base.relation_by_oid(oid)? {
        Relation::Table(table) => difference(Some(&table), now.table(oid)),
        Relation::View(view) => difference(Some(&view), now.view(oid)),
        Relation::Sequence(sequence) => difference(Some(&sequence), now.sequence(oid)),
    }
}

/// Checks that rows which a transaction wrote to a table as of `base` are still valid rows of the table in `now`.
pub(crate) fn check_written_rows(base: &CatalogState, now: &CatalogState, table: Oid) -> Result<(), Conflict> {
    let dropped = base.table(table).is_some() && now.table(table).is_none();
    let reason = if dropped { Some(ConflictReason::Dropped) } else { rows_conflict(base, now, table) };
    reason.map_or(Ok(()), |reason| Err(Conflict { kind: ObjectKind::Table, oid: table, reason }))
}

fn rows_conflict(base: &CatalogState, now: &CatalogState, table: Oid) -> Option<ConflictReason> {
    match (base.table(table), now.table(table)) {
        (Some(old), Some(new)) if !Arc::ptr_eq(old, new) && !accepts_rows_of(new, old) => Some(ConflictReason::Changed),
        _ if was_emptied(base, now, table) => Some(ConflictReason::Emptied),
        _ => None,
    }
}

fn was_emptied(base: &CatalogState, now: &CatalogState, table: Oid) -> bool {
    base.rows(table).counters.truncations != now.rows(table).counters.truncations
}

fn rows_difference(base: &CatalogState, now: &CatalogState, table: Oid) -> Option<ConflictReason> {
    let (before, after) = (base.rows(table).counters, now.rows(table).counters);
    if before.truncations != after.truncations {
        Some(ConflictReason::Emptied)
    } else if before.writes != after.writes {
        Some(ConflictReason::RowsAdded)
    } else {
        None
    }
}

/// Returns whether rows made for `old` can violate `new`, whose creation did not check them.
fn is_stricter(old: &Table, new: &Table) -> bool {
    let columns = new.columns.iter().any(|column| match old.column(column.id) {
        Some(old) => old.sql_type != column.sql_type || (column.not_null && !old.not_null),
        // Rows from before the column existed read `missing`; if that is NULL they would violate NOT NULL, or each need
        // its own value of a volatile DEFAULT.
        None => column.missing.is_none() && (column.not_null || column.default.is_some()),
    });
    columns || has_new_check(old, new) || has_new_key(old, new)
}

/// Returns whether all rows made for `old` are valid rows of `new`.
fn accepts_rows_of(new: &Table, old: &Table) -> bool {
    let has_all_columns = old.columns.iter().all(|column| new.column(column.id).is_some());
    has_all_columns && !is_stricter(old, new)
}

/// Returns whether `new` enforces a key or foreign key that `old` does not.
fn has_new_key(old: &Table, new: &Table) -> bool {
    let mut keys = new.row_indexes().filter(|index| index.unique);
    let is_reference =
        |constraint: &&Constraint| constraint.enforced && matches!(constraint.kind, ConstraintKind::ForeignKey { .. });
    let mut references = new.constraints.iter().filter(is_reference);
    keys.any(|key| !old.row_indexes().any(|known| known.unique && known.oid == key.oid))
        || references
            .any(|reference| !old.constraints.iter().filter(is_reference).any(|known| known.oid == reference.oid))
}

fn has_new_check(old: &Table, new: &Table) -> bool {
    let checks = new.constraints.iter().filter(|constraint| matches!(constraint.kind, ConstraintKind::Check { .. }));
    checks.clone().any(|check| old.constraints.iter().all(|known| known.kind != check.kind))
}
