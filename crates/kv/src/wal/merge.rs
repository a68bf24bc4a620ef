//! Entries of the trees with later changes laid over them.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::vec;

use super::memtable::Changed;
use crate::{Direction, Entries, Entry, Result};

/// `below` and `changes` both lie in the order of `direction`.
pub(super) struct Merged {
    below: Peekable<Entries>,
    changes: Peekable<vec::IntoIter<Changed>>,
    direction: Direction,
}

impl Merged {
    pub(super) fn new(below: Entries, mut changes: Vec<Changed>, direction: Direction) -> Self {
        if direction == Direction::Reverse {
            changes.reverse();
        }
        Self { below: below.peekable(), changes: changes.into_iter().peekable(), direction }
    }
}

impl Iterator for Merged {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((changed, _)) = self.changes.peek() else { return self.below.next() };
            let order = match (self.below.peek(), self.direction) {
                (Some(Ok((key, _))), Direction::Forward) => key.cmp(changed),
                (Some(Ok((key, _))), Direction::Reverse) => changed.cmp(key),
                (Some(Err(_)), _) => return self.below.next(),
                (None, _) => Ordering::Greater,
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
