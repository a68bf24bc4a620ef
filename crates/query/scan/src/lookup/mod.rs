//! Rows by key: unflushed rows by the indexes of their layers, flushed rows by a key index of each shard.
//!
//! - `index_access.rs`: the choice of an index for a statement's conditions,
//! - `key_range.rs`: ranges of encoded keys,
//! - `key_order_merge.rs`: the rows of a range in key order, merged from layers and shards,
//! - `shard_key_index.rs`: the key index of a shard, built in memory on demand,
//! - `fetch_row.rs`, `row_block_cache.rs`: reads of single rows, and the cache of blocks of rows that they are read in.

use std::sync::Arc;

use catalog::{RowPosition, Table, TableRows};
use objects::Objects;
use types::{ColumnId, Oid, RowId, ShardId, SqlResult};

use self::key_order_merge::KeyOrderMerge;
use self::row_block_cache::RowBlockCache;
use self::shard_key_index::{KeyIndexCache, ShardKeyIndex};
use crate::open_shards::OpenShardCache;

mod fetch_row;
mod index_access;
mod key_order_merge;
mod key_range;
mod row_block_cache;
mod shard_key_index;

pub use fetch_row::count_blocks;
pub use index_access::{Comparison, IndexAccess, comparison_of};
pub use key_range::KeyRange;
pub(crate) use key_range::datum_to_value;

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
pub struct LocatedRow {
    pub row: RowId,
    pub place: RowPosition,
}

/// Service that finds rows by key. It caches key indexes of shards, and blocks of rows that were read for single rows.
#[derive(Debug)]
pub struct KeyLookup {
    objects: Objects,
    /// Open shards, shared with the scans.
    opened: Arc<OpenShardCache>,
    key_indexes: KeyIndexCache,
    row_blocks: RowBlockCache,
}

impl KeyLookup {
    pub fn new(objects: Objects, opened: Arc<OpenShardCache>) -> Self {
        Self { objects, opened, key_indexes: KeyIndexCache::default(), row_blocks: RowBlockCache::default() }
    }

    /// Returns, for each key, the visible rows that have it.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn find_rows(
        &self,
        key_columns: KeyColumns<'_>,
        rows: &TableRows,
        keys: &[Vec<u8>],
    ) -> SqlResult<Vec<Vec<LocatedRow>>> {
        let mut found = match key_columns.index {
            Some(_) => vec![Vec::new(); keys.len()],
            None => scan_unflushed(key_columns, rows, keys)?,
        };
        for (key, found) in keys.iter().zip(&mut found) {
            let range = KeyRange::starting_with(key);
            let shards = self.shard_key_indexes(key_columns, rows, &range).await?;
            // No index has the default id, so that no unflushed row is found a second time.
            let index = key_columns.index.unwrap_or_default();
            found.extend(KeyOrderMerge::new(rows, index, &range, shards, false));
        }
        Ok(found)
    }

    /// Returns the first `count_max` rows of the range in the order of the index.
    pub async fn find_range(
        &self,
        key_columns: KeyColumns<'_>,
        rows: &TableRows,
        range: &KeyRange,
        backwards: bool,
        count_max: usize,
    ) -> SqlResult<Vec<LocatedRow>> {
        let shards = self.shard_key_indexes(key_columns, rows, range).await?;
        let index = key_columns.index.unwrap_or_default();
        Ok(KeyOrderMerge::new(rows, index, range, shards, backwards).take(count_max).collect())
    }

    /// Returns the key indexes of the shards that may have keys in the range.
    async fn shard_key_indexes(
        &self,
        of: KeyColumns<'_>,
        rows: &TableRows,
        range: &KeyRange,
    ) -> SqlResult<Vec<(ShardId, Arc<ShardKeyIndex>)>> {
        let mut indexes = Vec::new();
        let shards = &rows.shards.shards;
        let numbers: Vec<usize> = match of.columns.first() {
            Some(first) => range.overlapping_shards(shards, *first).collect(),
            None => (0..shards.len()).collect(),
        };
        for shard in numbers.into_iter().filter_map(|number| shards.get(number)) {
            // The future of a read is large and rarely needed: boxed, lookups of unflushed rows do not carry it.
            let keys = Box::pin(self.key_indexes.get_or_build(&self.opened, &self.objects, of, &shard)).await?;
            indexes.push((shard.id, keys));
        }
        Ok(indexes)
    }
}

/// Returns the unflushed rows in a range of an index, in its order.
pub(crate) fn unflushed_rows<'a>(
    rows: &'a TableRows,
    index: Oid,
    range: &'a KeyRange,
) -> impl Iterator<Item = RowId> + 'a {
    unflushed_in_key_order(rows, index, range, false).map(|found| found.row)
}

/// Like [`unflushed_rows`], with locations, and in descending order if `backwards`.
pub fn unflushed_in_key_order<'a>(
    rows: &'a TableRows,
    index: Oid,
    range: &'a KeyRange,
    backwards: bool,
) -> impl Iterator<Item = LocatedRow> + 'a {
    KeyOrderMerge::new(rows, index, range, Vec::new(), backwards)
}

fn scan_unflushed(of: KeyColumns<'_>, rows: &TableRows, keys: &[Vec<u8>]) -> SqlResult<Vec<Vec<LocatedRow>>> {
    let mut found = vec![Vec::new(); keys.len()];
    for (row, version) in rows.fresh_rows() {
        let (key, _) = of.table.index_key(of.columns, &version.tuple).map_err(storage_error::from_catalog)?;
        for (_, found) in keys.iter().zip(&mut found).filter(|(wanted, _)| **wanted == key) {
            found.push(LocatedRow { row, place: RowPosition::Fresh });
        }
    }
    Ok(found)
}
