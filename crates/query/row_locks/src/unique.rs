//! Checks of unique keys: each new key is locked, then looked up among the transaction's own rows and all committed
//! ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::{RowIndex, Table, TableRows};
use rowstore::Tuple;
use scan::{Found, KeyColumns, KeyLookup};
use storage_error::{from_catalog, from_txn};
use txn::Transaction;
use txn::locks::KeyLock;
use types::{ColumnId, Condition, RowId, SqlError, SqlResult};

use super::constraints::may_differ;
use super::shown::shown;
use super::{NewRow, Waits};

/// Fails with `23505` if a row that is not replaced has the key of a new row.
pub(super) async fn check(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    new: &[NewRow],
    old: &[NewRow],
    set: Option<&[ColumnId]>,
    transaction: &Transaction,
    waits: &Waits,
) -> SqlResult<()> {
    let replaced: HashSet<RowId> = new.iter().chain(old).filter_map(|row| row.id).collect();
    for index in table.row_indexes().filter(|index| index.unique && may_differ(index.columns, set)) {
        let mut keys = Vec::with_capacity(new.len());
        let mut known = HashMap::with_capacity(new.len());
        for row in new {
            let (key, has_null) = table.index_key(index.columns, &row.tuple).map_err(from_catalog)?;
            if has_null {
                continue;
            }
            if known.insert(key.clone(), &row.tuple).is_some() {
                return Err(violation(table, index, &row.tuple));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            continue;
        }
        keys.sort_unstable();
        let taken = taken(lookup, table, index, &keys, transaction, waits).await?;
        for (key, found) in keys.iter().zip(taken) {
            if found.iter().any(|found| !replaced.contains(&found.row)) {
                return Err(violation(table, index, known[key]));
            }
        }
    }
    Ok(())
}

/// Locks the keys and returns the rows that have them, among the transaction's own rows and all rows committed by then.
///
/// # Errors
/// Errors of locks (`40P01`, `55P03`, `57014`) and of the storage.
pub async fn taken(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    index: RowIndex<'_>,
    keys: &[Vec<u8>],
    transaction: &Transaction,
    waits: &Waits,
) -> SqlResult<Vec<Vec<Found>>> {
    let locked = transaction.lock_keys(index.oid, keys, KeyLock::Exclusive, waits.wait());
    waits.interruptibly(locked).await?;
    let of = KeyColumns { table, index: Some(index.oid), columns: index.columns };
    lookup.find(of, &*newest(transaction, table)?, keys).await
}

/// Returns the newest committed rows of a table, overlaid by the transaction's own changes.
///
/// # Errors
/// Errors of the transaction.
pub fn newest(transaction: &Transaction, table: &Table) -> SqlResult<Arc<TableRows>> {
    transaction.over_newest(table.oid).map_err(from_txn)
}

/// Returns the `23505` error of a duplicate key.
fn violation(table: &Table, index: RowIndex<'_>, row: &Tuple) -> SqlError {
    let name = table.index_name(index.oid);
    let message = format!("duplicate key value violates unique constraint \"{name}\"");
    let (columns, values) = shown(table, index.columns, row);
    SqlError::new(Condition::UniqueViolation, message)
        .with_detail(format!("Key ({columns})=({values}) already exists."))
        .with_constraint(name)
}
