//! Rows by key, wherever they lie: fresh ones in the layers' indexes, settled ones by an index of each shard.

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

/// What keys are looked up in.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumns<'a> {
    pub table: &'a Arc<Table>,
    /// The index that fresh rows are found by; without one they are looked at one by one.
    pub index: Option<Oid>,
    pub columns: &'a [ColumnId],
}

/// A row that has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub row: RowId,
    pub place: RowPlace,
}

/// Finds rows by key. It keeps the keys of shards that were asked for, and rows of shards that were read one by one.
#[derive(Debug)]
pub struct KeyLookup {
    objects: Objects,
    /// Shared with the scans.
    opened: Arc<OpenedShards>,
    keys: KeyCache,
    settled: SettledRows,
}

impl KeyLookup {
    pub fn new(objects: Objects, opened: Arc<OpenedShards>) -> Self {
        Self { objects, opened, keys: KeyCache::default(), settled: SettledRows::default() }
    }

    /// For each key the rows of `rows` that have it.
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
            // No index has this id, so of fresh rows none is found twice.
            let index = of.index.unwrap_or_default();
            found.extend(InOrder::new(rows, index, &range, shards, false));
        }
        Ok(found)
    }

    /// The first `count_max` rows of the range in the order of the index.
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

    /// The indexes of the shards that may have keys of the range.
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
            // Reading is rare, and its future large: who asks for fresh rows does not carry it.
            let keys = Box::pin(self.keys.of(&self.opened, &self.objects, of, &shard)).await?;
            indexes.push((shard.id, keys));
        }
        Ok(indexes)
    }
}

/// The fresh rows of a range of an index, in its order.
pub(crate) fn fresh<'a>(rows: &'a TableRows, index: Oid, range: &'a KeyRange) -> impl Iterator<Item = RowId> + 'a {
    fresh_in_order(rows, index, range, false).map(|found| found.row)
}

/// As [`fresh`], from the last on where `backwards`.
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
