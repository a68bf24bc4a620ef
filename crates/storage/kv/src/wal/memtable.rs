//! Memtables: changes in memory that are not in the trees yet.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::vec;

use bytes::Bytes;
use imbl::OrdMap;

use crate::log::Record;
use crate::{Batch, Direction, KeyRange, Op, Space};

/// Changed keys with their value, or `None` if deleted. A clone is a snapshot and costs one pointer.
type Keys = OrdMap<Bytes, Option<Bytes>>;

/// The newest change of each key, by key space.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    spaces: BTreeMap<Space, Keys>,
}

/// A changed key with its value, or `None` if deleted.
pub(super) type Changed = (Bytes, Option<Bytes>);

impl Memtable {
    /// Builds a memtable from `records`, oldest first.
    pub(super) fn of(records: Vec<Record>) -> Self {
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
    pub(super) fn range(&self, space: Space, range: &KeyRange, direction: Direction) -> Changes {
        let keys = if range.is_empty() { Keys::new() } else { self.spaces.get(&space).cloned().unwrap_or_default() };
        Changes { keys, left: range.clone(), direction, piece: Vec::new().into_iter(), piece_length: 1 }
    }

    /// Iterates over the spaces with their changes in key order.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (Space, &Keys)> {
        self.spaces.iter().map(|(space, keys)| (*space, keys))
    }
}

/// Iterator over the changes of a range. It looks changes up in chunks of growing length, so that reading a few is
/// cheap.
#[derive(Debug)]
pub(super) struct Changes {
    keys: Keys,
    left: KeyRange,
    direction: Direction,
    piece: vec::IntoIter<Changed>,
    piece_length: usize,
}

/// Maximum number of changes in one chunk.
const PIECE_LENGTH_MAX: usize = 256;

impl Iterator for Changes {
    type Item = Changed;

    fn next(&mut self) -> Option<Changed> {
        if let Some(changed) = self.piece.next() {
            return Some(changed);
        }
        if self.left.is_empty() {
            return None;
        }
        let copied = |(key, value): (&Bytes, &Option<Bytes>)| (key.clone(), value.clone());
        let range = self.keys.range::<_, [u8]>(self.left.bounds());
        let piece: Vec<Changed> = match self.direction {
            Direction::Forward => range.take(self.piece_length).map(copied).collect(),
            Direction::Reverse => range.rev().take(self.piece_length).map(copied).collect(),
        };
        let last = piece.last()?.0.clone();
        match self.direction {
            Direction::Forward => self.left.start = Bound::Excluded(last),
            Direction::Reverse => self.left.end = Bound::Excluded(last),
        }
        self.piece_length = (self.piece_length * 4).min(PIECE_LENGTH_MAX);
        self.piece = piece.into_iter();
        self.piece.next()
    }
}
