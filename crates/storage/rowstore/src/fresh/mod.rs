//! A table's fresh rows as committed: a layer that takes changes and, while it settles, a sealed one below.

use std::sync::Arc;

use imbl::OrdMap;
use roaring::RoaringBitmap;
use types::{RowId, ShardId};

use crate::{Layer, Row};

#[cfg(test)]
mod tests;

/// The committed fresh rows of a table. Cloning costs a few pointers.
#[derive(Debug, Clone, PartialEq)]
pub struct FreshRows {
    /// The number of the active layer's generation; grows, never reused within the table.
    pub generation: u64,
    pub active: Layer,
    pub sealed: Option<Sealed>,
}

/// A layer on its way into shards. Its rows stay as they were when it was sealed; what became of them since is in the
/// active layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed {
    pub generation: u64,
    pub rows: Layer,
}

impl Default for FreshRows {
    fn default() -> Self {
        Self { generation: 1, active: Layer::default(), sealed: None }
    }
}

impl FreshRows {
    /// The row's newest version.
    #[must_use]
    pub fn get(&self, id: RowId) -> Option<&Arc<Row>> {
        self.active.get(id).or_else(|| {
            let sealed = self.sealed.as_ref().filter(|_| !self.active.hides(id))?;
            sealed.rows.get(id)
        })
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        // Every hidden row is one of the sealed layer.
        let sealed = self.sealed.as_ref().map_or(0, |sealed| sealed.rows.len() - self.active.gone_len());
        self.active.len() + sealed
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of all rows, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.active.memory_bytes() + self.sealed.as_ref().map_or(0, |sealed| sealed.rows.memory_bytes())
    }

    /// The layers from the newest to the oldest.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.active).chain(self.sealed.as_ref().map(|sealed| &sealed.rows))
    }

    /// Sets a row's newest version.
    pub fn put(&mut self, id: RowId, row: Arc<Row>) {
        let hide = self.is_sealed(id);
        self.active.put(id, row, hide);
    }

    /// Deletes a row.
    pub fn remove(&mut self, id: RowId) {
        let hide = self.is_sealed(id);
        self.active.remove(id, hide);
    }

    /// Whether the sealed layer has a version of the row, hidden or not.
    #[must_use]
    pub fn is_sealed(&self, id: RowId) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.rows.get(id).is_some())
    }

    /// Begins to settle: the active layer is sealed, an empty one takes its place. Only with nothing sealed.
    pub fn seal(&mut self) {
        assert!(self.sealed.is_none(), "one layer settles at a time");
        assert_eq!(self.active.gone_len(), 0, "nothing lies below to be hidden");
        let rows = std::mem::take(&mut self.active);
        self.sealed = Some(Sealed { generation: self.generation, rows });
        self.generation += 1;
    }

    /// The sealed rows are in shards now: gives those that were changed or deleted since, which their shards must not show.
    pub fn settled(&mut self) -> Vec<RowId> {
        self.sealed = None;
        let late = self.active.gone().collect();
        self.active.forget_gone();
        late
    }

    /// No rows, and a generation that none of the present keys belongs to.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { generation: self.generation + 1, ..Self::default() }
    }
}

/// What one transaction has written to a table and not committed: a layer above the committed ones, and the rows of shards
/// that it has changed or deleted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnRows {
    pub layer: Layer,
    pub deleted: OrdMap<ShardId, Arc<RoaringBitmap>>,
}

impl OwnRows {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layer.is_empty() && self.deleted.is_empty()
    }

    /// Takes a row out of its shard.
    pub fn delete_from_shard(&mut self, shard: ShardId, ordinal: u32) {
        let bitmap = self.deleted.entry(shard).or_default();
        Arc::make_mut(bitmap).insert(ordinal);
    }

    /// How many rows of shards are deleted.
    #[must_use]
    pub fn deleted_len(&self) -> u64 {
        self.deleted.values().map(|bitmap| bitmap.len()).sum()
    }
}
