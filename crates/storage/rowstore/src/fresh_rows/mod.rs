//! Fresh rows of a table: an active layer and, during a flush, a sealed layer below it.

use std::sync::Arc;

use imbl::OrdMap;
use roaring::RoaringBitmap;
use types::{RowId, ShardId};

use crate::{Layer, RowVersion};

#[cfg(test)]
mod tests;

/// Committed fresh rows of a table: rows that are not yet flushed to Parquet. A clone costs a few pointers.
#[derive(Debug, Clone, PartialEq)]
pub struct FreshRows {
    /// Generation of the active layer; increases and is never reused within the table.
    pub generation: u64,
    /// Layer that takes changes.
    pub active: Layer,
    /// Layer that is being flushed; `None` if no flush is running.
    pub sealed: Option<SealedLayer>,
}

/// Sealed layer: its rows are being flushed to shards and do not change. Later changes of them are in the active layer.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedLayer {
    pub generation: u64,
    pub rows: Layer,
}

impl Default for FreshRows {
    fn default() -> Self {
        Self { generation: 1, active: Layer::default(), sealed: None }
    }
}

impl FreshRows {
    /// Returns the newest version of a row.
    #[must_use]
    pub fn get(&self, id: RowId) -> Option<&Arc<RowVersion>> {
        self.active.get(id).or_else(|| {
            let sealed = self.sealed.as_ref().filter(|_| !self.active.hides(id))?;
            sealed.rows.get(id)
        })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        // The active layer hides only rows of the sealed layer.
        let sealed = self.sealed.as_ref().map_or(0, |sealed| sealed.rows.len() - self.active.hidden_len());
        self.active.len() + sealed
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the approximate memory of all rows, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.active.memory_bytes() + self.sealed.as_ref().map_or(0, |sealed| sealed.rows.memory_bytes())
    }

    /// Iterates over the layers from newest to oldest.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.active).chain(self.sealed.as_ref().map(|sealed| &sealed.rows))
    }

    /// Sets the newest version of a row.
    pub fn put(&mut self, id: RowId, row: Arc<RowVersion>) {
        let hide = self.is_sealed(id);
        self.active.put(id, row, hide);
    }

    /// Deletes a row.
    pub fn remove(&mut self, id: RowId) {
        let hide = self.is_sealed(id);
        self.active.remove(id, hide);
    }

    /// Whether the sealed layer contains a version of the row, hidden or not.
    #[must_use]
    pub fn is_sealed(&self, id: RowId) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.rows.get(id).is_some())
    }

    /// Begins a flush: seals the active layer and replaces it with an empty one. Panics if a layer is already sealed.
    pub fn begin_flush(&mut self) {
        assert!(self.sealed.is_none(), "only one layer is flushed at a time");
        assert_eq!(self.active.hidden_len(), 0, "a layer without a sealed layer below hides no rows");
        let rows = std::mem::take(&mut self.active);
        self.sealed = Some(SealedLayer { generation: self.generation, rows });
        self.generation += 1;
    }

    /// Ends a flush, whose rows are now in shards: drops the sealed layer and returns the rows changed or deleted since
    /// it was sealed, which must be deleted from the new shards.
    pub fn finish_flush(&mut self) -> Vec<RowId> {
        self.sealed = None;
        let changed_since = self.active.hidden().collect();
        self.active.clear_hidden();
        changed_since
    }

    /// Returns fresh rows without any row, in a new generation.
    #[must_use]
    pub fn emptied_in_next_generation(&self) -> Self {
        Self { generation: self.generation + 1, ..Self::default() }
    }
}

/// Uncommitted changes of one transaction in one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UncommittedRows {
    /// New row versions, a layer above the committed ones.
    pub layer: Layer,
    /// Rows of shards that the transaction has changed or deleted.
    pub deleted_in_shards: OrdMap<ShardId, Arc<RoaringBitmap>>,
}

impl UncommittedRows {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layer.is_empty() && self.deleted_in_shards.is_empty()
    }

    /// Marks a row of a shard as deleted.
    pub fn delete_from_shard(&mut self, shard: ShardId, ordinal: u32) {
        let bitmap = self.deleted_in_shards.entry(shard).or_default();
        Arc::make_mut(bitmap).insert(ordinal);
    }

    /// Returns the number of rows of shards that are deleted.
    #[must_use]
    pub fn deleted_in_shards_len(&self) -> u64 {
        self.deleted_in_shards.values().map(|bitmap| bitmap.len()).sum()
    }
}
