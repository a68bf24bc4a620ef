//! Merge iterators: tree entries overlaid with newer changes from memtables.

use std::cmp::Ordering;
use std::iter::Peekable;

use bytes::Bytes;

use super::memtable::{KeyChange, RangeChanges};
use crate::{Direction, Entries, Entry, Result};

/// Iterator over tree entries with newer changes applied; both inputs are in the order of `direction`.
pub(super) struct MergedEntries {
    tree_entries: Peekable<Entries>,
    changes: Peekable<MergedChanges>,
    direction: Direction,
}

impl MergedEntries {
    pub(super) fn new(tree_entries: Entries, changes: MergedChanges) -> Self {
        let direction = changes.direction;
        Self { tree_entries: tree_entries.peekable(), changes: changes.peekable(), direction }
    }
}

impl Iterator for MergedEntries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((changed, _)) = self.changes.peek() else { return self.tree_entries.next() };
            let order = match self.tree_entries.peek() {
                Some(Ok((key, _))) => compare(self.direction, key, changed),
                Some(Err(_)) => return self.tree_entries.next(),
                None => Ordering::Greater,
            };
            if order == Ordering::Less {
                return self.tree_entries.next();
            }
            if order == Ordering::Equal {
                self.tree_entries.next();
            }
            if let Some((key, Some(value))) = self.changes.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}

/// Iterator over the newest change of each key in two memtables; `newer` is the newer one.
pub(super) struct MergedChanges {
    newer: Peekable<RangeChanges>,
    older: Option<Peekable<RangeChanges>>,
    direction: Direction,
}

impl MergedChanges {
    pub(super) fn new(newer: RangeChanges, older: Option<RangeChanges>, direction: Direction) -> Self {
        Self { newer: newer.peekable(), older: older.map(Iterator::peekable), direction }
    }
}

impl Iterator for MergedChanges {
    type Item = KeyChange;

    fn next(&mut self) -> Option<KeyChange> {
        let Some(older) = &mut self.older else { return self.newer.next() };
        let order = match (self.newer.peek(), older.peek()) {
            (Some((newer, _)), Some((older, _))) => compare(self.direction, older, newer),
            (Some(_), None) => Ordering::Greater,
            (None, _) => Ordering::Less,
        };
        if order == Ordering::Less {
            return older.next();
        }
        if order == Ordering::Equal {
            older.next();
        }
        self.newer.next()
    }
}

/// Compares keys in the order of the scan.
fn compare(direction: Direction, left: &Bytes, right: &Bytes) -> Ordering {
    match direction {
        Direction::Forward => left.cmp(right),
        Direction::Reverse => right.cmp(left),
    }
}
