//! Rows by key: unflushed rows by the indexes of their layers, flushed rows by a key index of each shard.
//!
//! - `access.rs`: the choice of an index for a statement's conditions,
//! - `key_range.rs`: ranges of encoded keys,
//! - `in_order.rs`: the rows of a range in key order, merged from layers and shards,
//! - `shard_keys.rs`: the key index of a shard, built in memory on demand,
//! - `fetch.rs`, `settled.rs`: reads of single rows, and the cache of blocks of rows that they are read in.

use std::sync::Arc;

use catalog::{RowPlace, Table, TableRows};
use objects::Objects;
use types::{ColumnId, Oid, RowId, ShardId, SqlResult};

use self::in_order::InOrder;
use self::settled::SettledRows;
use self::shard_keys::{KeyCache, ShardKeys};
use crate::opened::OpenedShards;

mod access;
mod fetch;
mod in_order;
mod key_range;
mod settled;
mod shard_keys;

pub use access::{Access, Comparison, comparison_of};
pub use fetch::pieces;
pub use key_range::KeyRange;
pub(crate) use key_range::value_of;

/// Table and columns that keys are looked up in.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumns<'a> {
    pub table: &'a Arc<Table>,
    /// Index of unflushed rows; without one they are compared one by one.
    pub index: Option<Oid>,
    pub columns: &'a [ColumnId],
}

/// Row with its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub row: RowId,
    pub place: RowPlace,
}

/// Service that finds rows by key. It caches key indexes of shards, and blocks of rows that were read for single rows.
#[derive(Debug)]
pub struct KeyLookup {
    objects: Objects,
    /// Open shards, shared with the scans.
    opened: Arc<OpenedShards>,
    keys: KeyCache,
    settled: SettledRows,
}

impl KeyLookup {
    pub fn new(objects: Objects, opened: Arc<OpenedShards>) -> Self {
        Self { objects, opened, keys: KeyCache::default(), settled: SettledRows::default() }
    }

    /// Returns, for each key, the visible rows that have it.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn find(&self, of: KeyColumns<'_>, rows: &TableRows, keys: &[Vec<u8>]) -> SqlResult<Vec<Vec<Found>>> {
        let mut found = match of.index {
            Some(_) => vec![Vec::new(); keys.len()],
            None => fresh_by_scan(of, rows, keys)?,
        };
        for (key, found) in keys.iter().zip(&mut found) {
            let range = KeyRange::starting_with(key);
            let shards = self.shard_keys(of, rows, &range).await?;
            // No index has the default id, so that no unflushed row is found a second time.
            let index = of.index.unwrap_or_default();
            found.extend(InOrder::new(rows, index, &range, shards, false));
        }
        Ok(found)
    }

    /// Returns the first `count_max` rows of the range in the order of the index.
    pub async fn find_range(
        &self,
        of: KeyColumns<'_>,
        rows: &TableRows,
        range: &KeyRange,
        backwards: bool,
        count_max: usize,
    ) -> SqlResult<Vec<Found>> {
        let shards = self.shard_keys(of, rows, range).await?;
        let index = of.index.unwrap_or_default();
        Ok(InOrder::new(rows, index, range, shards, backwards).take(count_max).collect())
    }

    /// Returns the key indexes of the shards that may have keys in the range.
    async fn shard_keys(
        &self,
        of: KeyColumns<'_>,
        rows: &TableRows,
        range: &KeyRange,
    ) -> SqlResult<Vec<(ShardId, Arc<ShardKeys>)>> {
        let mut indexes = Vec::new();
        let shards = &rows.shards.shards;
        let numbers: Vec<usize> = match of.columns.first() {
            Some(first) => range.shards(shards, *first).collect(),
            None => (0..shards.len()).collect(),
        };
        for shard in numbers.into_iter().filter_map(|number| shards.get(number)) {
            // The future of a read is large and rarely needed: boxed, lookups of unflushed rows do not carry it.
            let keys = Box::pin(self.keys.of(&self.opened, &self.objects, of, &shard)).await?;
            indexes.push((shard.id, keys));
        }
        Ok(indexes)
    }
}

/// Returns the unflushed rows in a range of an index, in its order.
pub(crate) fn fresh<'a>(rows: &'a TableRows, index: Oid, range: &'a KeyRange) -> impl Iterator<Item = RowId> + 'a {
    fresh_in_order(rows, index, range, false).map(|found| found.row)
}

/// Like [`fresh`], with locations, and in descending order if `backwards`.
pub fn fresh_in_order<'a>(
    rows: &'a TableRows,
    index: Oid,
    range: &'a KeyRange,
    backwards: bool,
) -> impl Iterator<Item = Found> + 'a {
    InOrder::new(rows, index, range, Vec::new(), backwards)
}

fn fresh_by_scan(of: KeyColumns<'_>, rows: &TableRows, keys: &[Vec<u8>]) -> SqlResult<Vec<Vec<Found>>> {
    let mut found = vec![Vec::new(); keys.len()];
    for (row, version) in rows.fresh_rows() {
        let (key, _) = of.table.index_key(of.columns, &version.tuple).map_err(storage_error::from_catalog)?;
        for (_, found) in keys.iter().zip(&mut found).filter(|(wanted, _)| **wanted == key) {
            found.push(Found { row, place: RowPlace::Fresh });
        }
    }
    Ok(found)
}
