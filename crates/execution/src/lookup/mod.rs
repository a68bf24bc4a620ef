//! Rows by key, wherever they lie: fresh ones in the layers' indexes, settled ones by an index of each shard.

use std::ops::Bound;
use std::sync::Arc;

use catalog::{RowPlace, Table, TableRows};
use rowstore::Layer;
use types::{ColumnId, Oid, RowId, SqlResult};

use crate::Execution;

mod fetch;
mod shard_keys;

pub(crate) use shard_keys::KeyCache;

/// What keys are looked up in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyColumns<'a> {
    pub(crate) table: &'a Arc<Table>,
    /// The index that fresh rows are found by; without one they are looked at one by one.
    pub(crate) index: Option<Oid>,
    pub(crate) columns: &'a [ColumnId],
}

/// A row that has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) row: RowId,
    pub(crate) place: RowPlace,
}

impl Execution {
    /// For each key the rows of `rows` that have it.
    pub(crate) async fn find(
        &self,
        of: KeyColumns<'_>,
        rows: &TableRows,
        keys: &[Vec<u8>],
    ) -> SqlResult<Vec<Vec<Found>>> {
        let mut found = match of.index {
            Some(index) => keys.iter().map(|key| fresh(rows, index, key)).collect(),
            None => fresh_by_scan(of, rows, keys)?,
        };
        for shard in &rows.shards.shards {
            let entries = self.keys.of(&self.opened, &self.objects, of, shard).await?;
            for (key, found) in keys.iter().zip(&mut found) {
                for (ordinal, row) in entries.find(key) {
                    let is_deleted = rows.shards.is_deleted(shard.id, ordinal)
                        || rows.own.deleted.get(&shard.id).is_some_and(|deleted| deleted.contains(ordinal));
                    if !is_deleted {
                        found.push(Found { row, place: RowPlace::Shard { shard: shard.id, ordinal } });
                    }
                }
            }
        }
        Ok(found)
    }
}

/// The fresh rows with this key in an index.
pub(crate) fn fresh(rows: &TableRows, index: Oid, key: &[u8]) -> Vec<Found> {
    let mut end = key.to_vec();
    end.extend([0xFF; 8]);
    let (own, active) = (&rows.own.layer, &rows.fresh.active);
    let entries = |layer: &Layer| layer.find(index, Bound::Included(key), Bound::Included(&end)).collect::<Vec<_>>();
    let mut found = entries(own);
    found.extend(entries(active).into_iter().filter(|row| !own.hides(*row)));
    if let Some(sealed) = &rows.fresh.sealed {
        found.extend(entries(&sealed.rows).into_iter().filter(|row| !own.hides(*row) && !active.hides(*row)));
    }
    found.into_iter().map(|row| Found { row, place: RowPlace::Fresh }).collect()
}

fn fresh_by_scan(of: KeyColumns<'_>, rows: &TableRows, keys: &[Vec<u8>]) -> SqlResult<Vec<Vec<Found>>> {
    let mut found = vec![Vec::new(); keys.len()];
    for (row, version) in rows.fresh_rows() {
        let (key, _) = of.table.index_key(of.columns, &version.tuple).map_err(crate::error::from_catalog)?;
        for (_, found) in keys.iter().zip(&mut found).filter(|(wanted, _)| **wanted == key) {
            found.push(Found { row, place: RowPlace::Fresh });
        }
    }
    Ok(found)
}
