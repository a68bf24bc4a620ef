//! Checks of unique keys: each new key is locked, then looked up among the transaction's own rows and all committed
//! ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::{RowIndex, Table, TableRows};
use rowstore::Tuple;
use scan::{KeyColumns, KeyLookup, LocatedRow};
use storage_error::{from_catalog, from_txn};
use txn::Transaction;
use txn::locks::KeyLock;
use types::{ColumnId, Condition, RowId, SqlError, SqlResult};

use super::constraints::may_differ;
use super::key_text::key_text;
use super::{CheckedRow, LockWaits};

/// Fails with `23505` if a row that is not replaced has the key of a new row.
pub(super) async fn check_unique(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    new: &[CheckedRow],
    old: &[CheckedRow],
    set: Option<&[ColumnId]>,
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<()> {
    let replaced: HashSet<RowId> = new.iter().chain(old).filter_map(|row| row.id).collect();
    for index in table.row_indexes().filter(|index| index.unique && may_differ(index.columns, set)) {
        let mut keys = Vec::with_capacity(new.len());
        let mut rows_by_key = HashMap::with_capacity(new.len());
        for row in new {
            let (key, has_null) = table.index_key(index.columns, &row.tuple).map_err(from_catalog)?;
            if has_null {
                continue;
            }
            if rows_by_key.insert(key.clone(), &row.tuple).is_some() {
                return Err(unique_violation(table, index, &row.tuple));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            continue;
        }
        keys.sort_unstable();
        let taken = lock_and_find_keys(lookup, table, index, &keys, transaction, waits).await?;
        for (key, found) in keys.iter().zip(taken) {
            if found.iter().any(|found| !replaced.contains(&found.row)) {
                return Err(unique_violation(table, index, rows_by_key[key]));
            }
        }
    }
    Ok(())
}

/// Locks the keys and returns the rows that have them, among the transaction's own rows and all rows committed by then.
///
/// # Errors
/// Errors of locks (`40P01`, `55P03`, `57014`) and of the storage.
pub async fn lock_and_find_keys(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    index: RowIndex<'_>,
    keys: &[Vec<u8>],
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<Vec<Vec<LocatedRow>>> {
    let locked = transaction.lock_keys(index.oid, keys, KeyLock::Exclusive, waits.lock_wait());
    waits.wait_for(locked).await?;
    let of = KeyColumns { table, index: Some(index.oid), columns: index.columns };
    lookup.find_rows(of, &*newest_rows(transaction, table)?, keys).await
}

/// Returns the newest committed rows of a table, overlaid by the transaction's own changes.
///
/// # Errors
/// Errors of the transaction.
pub fn newest_rows(transaction: &Transaction, table: &Table) -> SqlResult<Arc<TableRows>> {
    transaction.rows_over_newest(table.oid).map_err(from_txn)
}

/// Returns the `23505` error of a duplicate key.
fn unique_violation(table: &Table, index: RowIndex<'_>, row: &Tuple) -> SqlError {
    let name = table.index_name(index.oid);
    let message = format!("duplicate key value violates unique constraint \"{name}\"");
    let (columns, values) = key_text(table, index.columns, row);
    SqlError::new(Condition::UniqueViolation, message)
        .with_detail(format!("Key ({columns})=({values}) already exists."))
        .with_constraint(name)
}
