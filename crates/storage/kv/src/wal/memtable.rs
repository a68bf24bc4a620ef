//! Memtables: changes in memory that are not in the trees yet.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::vec;

use bytes::Bytes;
use imbl::OrdMap;

use crate::logical_log::Record;
use crate::{Batch, Direction, KeyRange, Op, Space};

/// Changed keys with their value, or `None` if deleted. A clone is a snapshot and costs one pointer.
type ChangeMap = OrdMap<Bytes, Option<Bytes>>;

/// The newest change of each key, by key space.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    spaces: BTreeMap<Space, ChangeMap>,
}

/// A changed key with its value, or `None` if deleted.
pub(super) type KeyChange = (Bytes, Option<Bytes>);

impl Memtable {
    /// Builds a memtable from `records`, oldest first.
    pub(super) fn from_records(records: Vec<Record>) -> Self {
        let mut table = Self::default();
        records.into_iter().for_each(|record| table.apply(record.batch));
        table
    }

    /// Applies the changes of `batch`.
    pub(super) fn apply(&mut self, batch: Batch) {
        for op in batch.into_ops() {
            let (space, key, value) = match op {
                Op::Put { space, key, value } => (space, key, Some(value)),
                Op::Delete { space, key } => (space, key, None),
            };
            self.spaces.entry(space).or_default().insert(key, value);
        }
    }

    /// Returns the change of `key`: a value, or `Some(None)` for a deletion; `None` if it has no change.
    pub(super) fn get(&self, space: Space, key: &[u8]) -> Option<Option<Bytes>> {
        self.spaces.get(&space)?.get(key).cloned()
    }

    /// Iterates over a snapshot of the changes in `range`.
    pub(super) fn range(&self, space: Space, range: &KeyRange, direction: Direction) -> RangeChanges {
        let keys =
            if range.is_empty() { ChangeMap::new() } else { self.spaces.get(&space).cloned().unwrap_or_default() };
        RangeChanges {
            change_map: keys,
            remaining_range: range.clone(),
            direction,
            chunk: Vec::new().into_iter(),
            chunk_length: 1,
        }
    }

    /// Iterates over the spaces with their changes in key order.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (Space, &ChangeMap)> {
        self.spaces.iter().map(|(space, keys)| (*space, keys))
    }
}

/// Iterator over the changes of a range. It looks changes up in chunks of growing length, so that reading a few is
/// cheap.
#[derive(Debug)]
pub(super) struct RangeChanges {
    change_map: ChangeMap,
    remaining_range: KeyRange,
    direction: Direction,
    chunk: vec::IntoIter<KeyChange>,
    chunk_length: usize,
}

/// Maximum number of changes in one chunk.
const CHUNK_LENGTH_MAX: usize = 256;

impl Iterator for RangeChanges {
    type Item = KeyChange;

    fn next(&mut self) -> Option<KeyChange> {
        if let Some(changed) = self.chunk.next() {
            return Some(changed);
        }
        if self.remaining_range.is_empty() {
            return None;
        }
        let copied = |(key, value): (&Bytes, &Option<Bytes>)| (key.clone(), value.clone());
        let range = self.change_map.range::<_, [u8]>(self.remaining_range.bounds());
        let piece: Vec<KeyChange> = match self.direction {
            Direction::Forward => range.take(self.chunk_length).map(copied).collect(),
            Direction::Reverse => range.rev().take(self.chunk_length).map(copied).collect(),
        };
        let last = piece.last()?.0.clone();
        match self.direction {
            Direction::Forward => self.remaining_range.start = Bound::Excluded(last),
            Direction::Reverse => self.remaining_range.end = Bound::Excluded(last),
        }
        self.chunk_length = (self.chunk_length * 4).min(CHUNK_LENGTH_MAX);
        self.chunk = piece.into_iter();
        self.chunk.next()
    }
}
