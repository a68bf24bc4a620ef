//! Checks of foreign keys: the referenced rows exist, and their keys stay locked until commit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use catalog::{Constraint, ConstraintKind, Table};
use rowstore::Tuple;
use scan::{KeyColumns, KeyLookup};
use storage_error::from_catalog;
use txn::Transaction;
use txn::locks::KeyLock;
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

use super::constraints::may_differ;
use super::key_text::key_text;
use super::unique_keys::newest_rows;
use super::{CheckedRow, LockWaits};

/// Fails with `23503` if a referenced row is missing. The referenced keys are locked in shared mode, so that they
/// cannot be deleted.
pub(super) async fn check_references(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    new: &[CheckedRow],
    set: Option<&[ColumnId]>,
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<()> {
    let view = transaction.view();
    for constraint in table.constraints.iter().filter(|constraint| constraint.enforced) {
        let ConstraintKind::ForeignKey { columns, references, referenced, .. } = &constraint.kind else { continue };
        if !may_differ(columns, set) {
            continue;
        }
        let target = view.state.table(*references);
        let target = target.ok_or_else(|| {
            SqlError::internal("foreign key check: the catalog snapshot does not have the referenced table")
        })?;
        let mut wanted: BTreeMap<Vec<u8>, &Tuple> = BTreeMap::new();
        for row in new {
            let (key, has_null) = table.index_key(columns, &row.tuple).map_err(from_catalog)?;
            if !has_null {
                wanted.insert(key, &row.tuple);
            }
        }
        let keys: Vec<Vec<u8>> = wanted.keys().cloned().collect();
        if keys.is_empty() {
            continue;
        }
        let index = key_index(target, referenced);
        if let Some(index) = index {
            let locked = transaction.lock_keys(index, &keys, KeyLock::Shared, waits.lock_wait());
            waits.wait_for(locked).await?;
        }
        let of = KeyColumns { table: target, index, columns: referenced };
        let mut found = lookup.find_rows(of, &*newest_rows(transaction, target)?, &keys).await?;
        if *references == table.oid {
            add_statement_rows(table, referenced, new, &keys, &mut found)?;
        }
        for (row, found) in wanted.values().zip(found) {
            if found.is_empty() {
                return Err(missing_reference(table, constraint, columns, row, target));
            }
        }
    }
    Ok(())
}

/// Adds the new rows themselves: rows of one statement may refer to each other.
fn add_statement_rows(
    table: &Table,
    referenced: &[ColumnId],
    new: &[CheckedRow],
    keys: &[Vec<u8>],
    found: &mut [Vec<scan::LocatedRow>],
) -> SqlResult<()> {
    let positions: HashMap<&[u8], usize> = keys.iter().enumerate().map(|(at, key)| (key.as_slice(), at)).collect();
    for row in new {
        let (key, _) = table.index_key(referenced, &row.tuple).map_err(from_catalog)?;
        if let Some(position) = positions.get(key.as_slice()) {
            let place = catalog::RowPosition::Fresh;
            found[*position].push(scan::LocatedRow { row: row.id.unwrap_or_default(), place });
        }
    }
    Ok(())
}

/// Returns the index on exactly these columns.
#[must_use]
pub fn key_index(table: &Table, columns: &[ColumnId]) -> Option<Oid> {
    table.row_indexes().find(|index| index.columns == columns).map(|index| index.oid)
}

fn missing_reference(
    table: &Table,
    constraint: &Constraint,
    columns: &[ColumnId],
    row: &Tuple,
    target: &Table,
) -> SqlError {
    let message =
        format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", table.name, constraint.name);
    let (names, values) = key_text(table, columns, row);
    SqlError::new(Condition::ForeignKeyViolation, message)
        .with_detail(format!("Key ({names})=({values}) is not present in table \"{}\".", target.name))
        .with_constraint(&constraint.name)
}

/// Returns the `23503` error of a deleted or changed key that other rows refer to.
#[must_use]
pub fn still_referenced(
    table: &Table,
    columns: &[ColumnId],
    row: &Tuple,
    referring: &Table,
    constraint: &Constraint,
) -> SqlError {
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        table.name, constraint.name, referring.name
    );
    let (names, values) = key_text(table, columns, row);
    SqlError::new(Condition::ForeignKeyViolation, message)
        .with_detail(format!("Key ({names})=({values}) is still referenced from table \"{}\".", referring.name))
        .with_constraint(&constraint.name)
}
