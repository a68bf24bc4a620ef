//! Changes in memory that the trees do not have yet.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::log::Record;
use crate::{Batch, KeyRange, Op, Space};

/// The newest change of each key: its value, or `None` where it was removed.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    spaces: BTreeMap<Space, BTreeMap<Bytes, Option<Bytes>>>,
}

/// A key and what became of it.
pub(super) type Changed = (Bytes, Option<Bytes>);

impl Memtable {
    /// The changes of `records`, oldest first.
    pub(super) fn of(records: Vec<Record>) -> Self {
        let mut table = Self::default();
        records.into_iter().for_each(|record| table.apply(record.batch));
        table
    }

    /// Takes the changes of `batch` after all it has.
    pub(super) fn apply(&mut self, batch: Batch) {
        for op in batch.into_ops() {
            let (space, key, value) = match op {
                Op::Put { space, key, value } => (space, key, Some(value)),
                Op::Delete { space, key } => (space, key, None),
            };
            self.spaces.entry(space).or_default().insert(key, value);
        }
    }

    /// What became of `key`; `None` where it is as it was.
    pub(super) fn get(&self, space: Space, key: &[u8]) -> Option<Option<Bytes>> {
        self.spaces.get(&space)?.get(key).cloned()
    }

    /// The changes in `range`, in key order.
    pub(super) fn range(&self, space: Space, range: &KeyRange) -> impl Iterator<Item = (&Bytes, &Option<Bytes>)> {
        let within = if range.is_empty() { None } else { self.spaces.get(&space) };
        within.into_iter().flat_map(|keys| keys.range::<[u8], _>(range.bounds()))
    }

    /// All changes, space by space, in key order.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (Space, &BTreeMap<Bytes, Option<Bytes>>)> {
        self.spaces.iter().map(|(space, keys)| (*space, keys))
    }
}
