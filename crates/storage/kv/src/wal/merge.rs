//! Merge iterators: tree entries overlaid with newer changes from memtables.

use std::cmp::Ordering;
use std::iter::Peekable;

use bytes::Bytes;

use super::memtable::{Changes, KeyChange};
use crate::{Direction, Entries, Entry, Result};

/// Iterator over tree entries with newer changes applied; both inputs are in the order of `direction`.
pub(super) struct MergedEntries {
    below: Peekable<Entries>,
    changes: Peekable<MergedChanges>,
    direction: Direction,
}

impl MergedEntries {
    pub(super) fn new(below: Entries, changes: MergedChanges) -> Self {
        let direction = changes.direction;
        Self { below: below.peekable(), changes: changes.peekable(), direction }
    }
}

impl Iterator for MergedEntries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((changed, _)) = self.changes.peek() else { return self.below.next() };
            let order = match self.below.peek() {
                Some(Ok((key, _))) => compare(self.direction, key, changed),
                Some(Err(_)) => return self.below.next(),
                None => Ordering::Greater,
            };
            if order == Ordering::Less {
                return self.below.next();
            }
            if order == Ordering::Equal {
                self.below.next();
            }
            if let Some((key, Some(value))) = self.changes.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}

/// Iterator over the newest change of each key in two memtables; `above` is the newer one.
pub(super) struct MergedChanges {
    above: Peekable<Changes>,
    below: Option<Peekable<Changes>>,
    direction: Direction,
}

impl MergedChanges {
    pub(super) fn new(above: Changes, below: Option<Changes>, direction: Direction) -> Self {
        Self { above: above.peekable(), below: below.map(Iterator::peekable), direction }
    }
}

impl Iterator for MergedChanges {
    type Item = KeyChange;

    fn next(&mut self) -> Option<KeyChange> {
        let Some(below) = &mut self.below else { return self.above.next() };
        let order = match (self.above.peek(), below.peek()) {
            (Some((above, _)), Some((below, _))) => compare(self.direction, below, above),
            (Some(_), None) => Ordering::Greater,
            (None, _) => Ordering::Less,
        };
        if order == Ordering::Less {
            return below.next();
        }
        if order == Ordering::Equal {
            below.next();
        }
        self.above.next()
    }
}

/// Compares keys in the order of the scan.
fn compare(direction: Direction, left: &Bytes, right: &Bytes) -> Ordering {
    match direction {
        Direction::Forward => left.cmp(right),
        Direction::Reverse => right.cmp(left),
    }
}
