//! Layers of fresh rows: rows by id and by index, and the rows of lower layers that they hide.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use types::{Oid, RowId};

use crate::{IndexEntry, RowVersion};

#[cfg(test)]
mod tests;

/// A layer of rows. Maps are persistent: a clone costs a few pointers and shares unchanged parts.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    rows: OrdMap<RowId, Arc<RowVersion>>,
    /// Hidden rows: those of lower layers that are deleted or replaced in this layer.
    hidden: OrdSet<RowId>,
    /// Entries of each index, by the index's id.
    indexes: OrdMap<Oid, OrdSet<IndexEntry>>,
    /// Approximate memory of the rows, in bytes.
    memory_bytes: u64,
    /// Total size of the stored forms of the rows, in bytes.
    tuple_bytes: u64,
}

/// Upper bound of the bytes that the key-value store needs per row in addition to its values, and per hidden row.
const STORED_BYTES_PER_ROW: u64 = 64;

impl Layer {
    /// Returns the version of a row in this layer.
    #[must_use]
    pub fn get(&self, id: RowId) -> Option<&Arc<RowVersion>> {
        self.rows.get(&id)
    }

    /// Whether this layer hides versions of the row in lower layers.
    #[must_use]
    pub fn hides(&self, id: RowId) -> bool {
        self.hidden.contains(&id)
    }

    /// Iterates over the rows in the order of their ids.
    pub fn rows(&self) -> impl Iterator<Item = (RowId, &Arc<RowVersion>)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// Iterates over the hidden rows of lower layers in the order of their ids.
    pub fn hidden(&self) -> impl Iterator<Item = RowId> + '_ {
        self.hidden.iter().copied()
    }

    /// Returns the number of rows in this layer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the layer neither contains nor hides rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.hidden.is_empty()
    }

    /// Returns the number of hidden rows of lower layers.
    #[must_use]
    pub fn hidden_len(&self) -> usize {
        self.hidden.len()
    }

    /// Returns the approximate memory of the rows, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns an upper bound of the layer's size in the key-value store, in bytes.
    #[must_use]
    pub fn stored_bytes_max(&self) -> u64 {
        self.tuple_bytes + STORED_BYTES_PER_ROW * (self.rows.len() + self.hidden.len()) as u64
    }

    /// Iterates over the entries of `index` from `from`, inclusive, to `to`, exclusive, in key order. The bounds are
    /// keys or key prefixes.
    pub fn entries<'a, 'b>(
        &'a self,
        index: Oid,
        from: &[u8],
        to: &'b [u8],
    ) -> impl Iterator<Item = &'a IndexEntry> + use<'a, 'b> {
        // Only the start is searched for, because most callers read one entry.
        let range = (Bound::Included(from), Bound::Unbounded);
        let entries = self.indexes.get(&index).map(|entries| entries.range::<_, [u8]>(range));
        entries.into_iter().flatten().take_while(move |entry| &***entry < to)
    }

    /// Iterates over the same entries as [`Layer::entries`] in reverse order.
    pub fn entries_backwards<'a, 'b>(
        &'a self,
        index: Oid,
        from: &'b [u8],
        to: &[u8],
    ) -> impl Iterator<Item = &'a IndexEntry> + use<'a, 'b> {
        let range = (Bound::Unbounded, Bound::Excluded(to));
        let entries = self.indexes.get(&index).map(|entries| entries.range::<_, [u8]>(range).rev());
        entries.into_iter().flatten().take_while(move |entry| from <= &***entry)
    }

    /// Sets the version of a row and updates the indexes; unchanged index entries are not touched. `hide` must be true
    /// if a lower layer contains the row.
    pub fn put(&mut self, id: RowId, row: Arc<RowVersion>, hide: bool) {
        self.memory_bytes += row.memory_bytes();
        self.tuple_bytes += row.tuple.as_bytes().len() as u64;
        let old = self.rows.insert(id, Arc::clone(&row));
        let old_keys = old.as_ref().map_or(&[][..], |old| &old.index_entries);
        for (index, entry) in old_keys.iter().filter(|key| !row.index_entries.contains(key)) {
            if let Some(entries) = self.indexes.get_mut(index) {
                entries.remove(entry);
            }
        }
        for (index, entry) in row.index_entries.iter().filter(|key| !old_keys.contains(key)) {
            self.indexes.entry(*index).or_default().insert(entry.clone());
        }
        if let Some(old) = old {
            self.subtract_sizes(&old);
        }
        if hide {
            self.hidden.insert(id);
        }
    }

    /// Removes the version of a row. `hide` must be true if a lower layer contains the row.
    pub fn remove(&mut self, id: RowId, hide: bool) {
        self.remove_version(id);
        if hide {
            self.hidden.insert(id);
        }
    }

    /// Clears the set of hidden rows, after the lower layer was dropped.
    pub fn clear_hidden(&mut self) {
        self.hidden = OrdSet::new();
    }

    /// Removes one row from the set of hidden rows.
    pub fn unhide(&mut self, id: RowId) {
        self.hidden.remove(&id);
    }

    /// Returns the same rows with other indexes; `keys` computes the index entries of each row.
    ///
    /// # Errors
    /// Errors of `keys`.
    pub fn reindexed<E>(
        &self,
        keys: impl Fn(RowId, &RowVersion) -> Result<Arc<[(Oid, IndexEntry)]>, E>,
    ) -> Result<Self, E> {
        let mut layer = Self { hidden: self.hidden.clone(), ..Self::default() };
        for (id, row) in self.rows() {
            layer.put(id, Arc::new(RowVersion { index_entries: keys(id, row)?, ..RowVersion::clone(row) }), false);
        }
        Ok(layer)
    }

    /// Subtracts the sizes of a removed row.
    fn subtract_sizes(&mut self, old: &RowVersion) {
        self.memory_bytes -= old.memory_bytes();
        self.tuple_bytes -= old.tuple.as_bytes().len() as u64;
    }

    /// Removes the version of a row with its index entries.
    fn remove_version(&mut self, id: RowId) {
        let Some(old) = self.rows.remove(&id) else { return };
        self.subtract_sizes(&old);
        for (index, entry) in old.index_entries.iter() {
            if let Some(entries) = self.indexes.get_mut(index) {
                entries.remove(entry);
            }
        }
    }
}

/// Layers are equal if they contain and hide the same rows.
impl PartialEq for Layer {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.hidden == other.hidden
    }
}
