//! One layer of a table's fresh rows: rows by id and by index, and which rows of the layers below it hides.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use types::{Oid, RowId};

use crate::{IndexEntry, Row};

#[cfg(test)]
mod tests;

/// Rows of one layer. Cloning costs a few pointers; layers share what they have in common.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    rows: OrdMap<RowId, Arc<Row>>,
    /// Rows of the layers below that are deleted, or newer here.
    gone: OrdSet<RowId>,
    indexes: OrdMap<Oid, OrdSet<IndexEntry>>,
    bytes: u64,
    /// Of the rows' values alone.
    tuple_bytes: u64,
}

/// What a store has with a row's values, and with a row that is gone, at most.
const STORED_PER_ROW: u64 = 64;

impl Layer {
    /// The row's version in this layer.
    #[must_use]
    pub fn get(&self, id: RowId) -> Option<&Arc<Row>> {
        self.rows.get(&id)
    }

    /// Whether the layers below no longer count for this row.
    #[must_use]
    pub fn hides(&self, id: RowId) -> bool {
        self.gone.contains(&id)
    }

    /// All rows, in the order of their ids.
    pub fn rows(&self) -> impl Iterator<Item = (RowId, &Arc<Row>)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// The rows of the layers below that are hidden, in the order of their ids.
    pub fn gone(&self) -> impl Iterator<Item = RowId> + '_ {
        self.gone.iter().copied()
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it neither has nor hides a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.gone.is_empty()
    }

    /// How many rows of the layers below it hides.
    #[must_use]
    pub fn gone_len(&self) -> usize {
        self.gone.len()
    }

    /// Memory of its rows, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// What its changes take in a store, at most.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.tuple_bytes + STORED_PER_ROW * (self.rows.len() + self.gone.len()) as u64
    }

    /// The entries of `index` from `from` on and before `to`, in their order; both are keys or the start of some.
    pub fn entries<'a, 'b>(
        &'a self,
        index: Oid,
        from: &[u8],
        to: &'b [u8],
    ) -> impl Iterator<Item = &'a IndexEntry> + use<'a, 'b> {
        // Only the first is searched for: most who ask want one.
        let range = (Bound::Included(from), Bound::Unbounded);
        let entries = self.indexes.get(&index).map(|entries| entries.range::<_, [u8]>(range));
        entries.into_iter().flatten().take_while(move |entry| &***entry < to)
    }

    /// As [`Layer::entries`], from the last one on.
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

    /// Sets the row's version; `hide` when a layer below has the row. Entries that stay the same are not touched.
    pub fn put(&mut self, id: RowId, row: Arc<Row>, hide: bool) {
        self.bytes += row.memory_bytes();
        self.tuple_bytes += row.tuple.as_bytes().len() as u64;
        let old = self.rows.insert(id, Arc::clone(&row));
        let old_keys = old.as_ref().map_or(&[][..], |old| &old.keys);
        for (index, entry) in old_keys.iter().filter(|key| !row.keys.contains(key)) {
            if let Some(entries) = self.indexes.get_mut(index) {
                entries.remove(entry);
            }
        }
        for (index, entry) in row.keys.iter().filter(|key| !old_keys.contains(key)) {
            self.indexes.entry(*index).or_default().insert(entry.clone());
        }
        if let Some(old) = old {
            self.uncount(&old);
        }
        if hide {
            self.gone.insert(id);
        }
    }

    /// Removes the row's version; `hide` when a layer below has the row.
    pub fn remove(&mut self, id: RowId, hide: bool) {
        self.take(id);
        if hide {
            self.gone.insert(id);
        }
    }

    /// What lay below is no longer there: nothing is hidden any more.
    pub fn forget_gone(&mut self) {
        self.gone = OrdSet::new();
    }

    /// Hides no longer this one row.
    pub fn unhide(&mut self, id: RowId) {
        self.gone.remove(&id);
    }

    /// The same rows under other indexes.
    ///
    /// # Errors
    /// Those of `keys`.
    pub fn reindexed<E>(&self, keys: impl Fn(RowId, &Row) -> Result<Arc<[(Oid, IndexEntry)]>, E>) -> Result<Self, E> {
        let mut layer = Self { gone: self.gone.clone(), ..Self::default() };
        for (id, row) in self.rows() {
            layer.put(id, Arc::new(Row { keys: keys(id, row)?, ..Row::clone(row) }), false);
        }
        Ok(layer)
    }

    fn uncount(&mut self, old: &Row) {
        self.bytes -= old.memory_bytes();
        self.tuple_bytes -= old.tuple.as_bytes().len() as u64;
    }

    fn take(&mut self, id: RowId) {
        let Some(old) = self.rows.remove(&id) else { return };
        self.uncount(&old);
        for (index, entry) in old.keys.iter() {
            if let Some(entries) = self.indexes.get_mut(index) {
                entries.remove(entry);
            }
        }
    }
}

/// Equal when they have and hide the same rows.
impl PartialEq for Layer {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.gone == other.gone
    }
}
