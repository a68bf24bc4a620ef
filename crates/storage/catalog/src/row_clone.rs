//! Tables that start as a clone of another table's rows: they share its shards, and copy its fresh rows and delete
//! bitmaps.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use rowstore::{FreshRows, Layer, RowVersion};
use types::{Oid, ShardId};

use crate::{CatalogState, CommittedRows, DeleteBitmap, Result, RowCounters, Table, TableRows};

/// Shards that several tables have, or had.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedShards(OrdSet<ShardId>);

/// The set is only a hint where to look, so it does not count for equality.
impl PartialEq for SharedShards {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl TableRows {
    /// Returns the rows of `source` as rows of `table`, whose own rows `self` are empty.
    pub(crate) fn clone_rows_from(&self, source: &TableRows, table: &Table) -> Result<Self> {
        let mut active = Layer::default();
        for (id, row) in source.fresh_rows() {
            let keys = table.index_entries(id, &row.tuple)?;
            active.put(id, Arc::new(RowVersion { index_entries: keys, ..RowVersion::clone(row) }), false);
        }
        let mut shards = source.shards.clone();
        shards.deleted = OrdMap::new();
        shards.deleted_rows = 0;
        let with_deleted: BTreeSet<ShardId> =
            source.shards.deleted.keys().chain(source.own_rows.deleted_in_shards.keys()).copied().collect();
        for shard in with_deleted {
            if let Some(places) =
                source.deleted_positions(shard).filter(|_| source.shards.shards.position(shard).is_some())
            {
                let mut deleted = DeleteBitmap::default();
                deleted.add(&places);
                shards.deleted_rows += deleted.positions.len();
                shards.deleted.insert(shard, Arc::new(deleted));
            }
        }
        // Rows that the table had under this id before it was dropped may not have been deleted from the store yet.
        let generation = self.fresh.generation.max(source.fresh.generation) + 1;
        let fresh = FreshRows { generation, active, sealed: None };
        let history = RowCounters { writes: self.counters.writes + 1, ..self.counters };
        Ok(CommittedRows { shards, fresh, counters: history }.into())
    }
}

impl CatalogState {
    /// Records the shards of a table that other tables have too.
    pub(crate) fn record_shared_shards(&mut self, table: Oid) {
        let own: HashSet<ShardId> = self.shards(table).shards.ids().collect();
        let others = self.tables().filter(|other| other.oid != table);
        let shards = others.flat_map(|other| self.shards(other.oid).shards.ids());
        let shared: Vec<ShardId> = shards.filter(|shard| own.contains(shard)).collect();
        self.shared_shards.0.extend(shared);
    }

    /// Records all shards that several tables have.
    pub(crate) fn record_all_shared_shards(&mut self) {
        let mut seen = HashSet::new();
        let shards = self.tables().flat_map(|table| self.shards(table.oid).shards.ids());
        let shared: Vec<ShardId> = shards.filter(|shard| !seen.insert(*shard)).collect();
        self.shared_shards.0.extend(shared);
    }

    /// Returns the shards of other tables that may be among those of `table`: their objects are needed even without it.
    #[must_use]
    pub fn shared_shards(&self, table: Oid) -> HashSet<ShardId> {
        if self.shared_shards.0.is_empty() {
            return HashSet::new();
        }
        let others = self.tables().filter(|other| other.oid != table);
        let shards = others.flat_map(|other| self.shards(other.oid).shards.ids());
        shards.filter(|shard| self.shared_shards.0.contains(shard)).collect()
    }
}
