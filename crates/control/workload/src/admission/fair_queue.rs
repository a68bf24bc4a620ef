//! A queue in which users take turns, and the items of one user go in the order in which they came.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// Users with their items. Items are ordered as they come.
#[derive(Debug, Clone)]
pub(super) struct FairQueue<K, T> {
    lines: HashMap<K, Line<T>>,
    /// Who is next, by turns that only grow.
    turns: BTreeMap<u64, K>,
    next_turn: u64,
    len: usize,
}

#[derive(Debug, Clone)]
struct Line<T> {
    items: BTreeSet<T>,
    turn: u64,
    weight: u32,
    /// Items that may still go in this turn.
    left: u32,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        FairQueue { lines: HashMap::new(), turns: BTreeMap::new(), next_turn: 0, len: 0 }
    }
}

impl<K: Copy + Eq + Hash, T: Copy + Ord> FairQueue<K, T> {
    /// Adds an item that is later than all of its user. Who had none is last in turn; `weight` items of it go in a turn, at least one.
    pub(super) fn push(&mut self, user: K, weight: u32, item: T) {
        self.len += 1;
        let weight = weight.max(1);
        if let Some(line) = self.lines.get_mut(&user) {
            line.items.insert(item);
            line.weight = weight;
            return;
        }
        let turn = self.take_turn(user);
        self.lines.insert(user, Line { items: BTreeSet::from([item]), turn, weight, left: weight });
    }

    /// The item whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (turn, user) = self.turns.first_key_value().map(|(turn, user)| (*turn, *user))?;
        let line = self.lines.get_mut(&user).expect("who has a turn has a line");
        let item = line.items.pop_first().expect("a line has items");
        self.len -= 1;
        line.left -= 1;
        if line.items.is_empty() {
            self.lines.remove(&user);
            self.turns.remove(&turn);
        } else if line.left == 0 {
            line.left = line.weight;
            self.turns.remove(&turn);
            let next = self.take_turn(user);
            self.lines.get_mut(&user).expect("it was just there").turn = next;
        }
        Some(item)
    }

    /// Takes an item out, wherever it is. False where it is not there.
    pub(super) fn remove(&mut self, user: &K, item: T) -> bool {
        let Some(line) = self.lines.get_mut(user) else { return false };
        if !line.items.remove(&item) {
            return false;
        }
        self.len -= 1;
        if line.items.is_empty() {
            self.turns.remove(&line.turn);
            self.lines.remove(user);
        }
        true
    }

    /// All items in the order in which they will go if none comes.
    pub(super) fn in_order(&self) -> Vec<T> {
        let mut rest = self.clone();
        std::iter::from_fn(|| rest.pop()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether nothing is left of users that have no items.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        self.lines.len() == self.turns.len() && self.lines.values().all(|line| !line.items.is_empty())
    }

    fn take_turn(&mut self, user: K) -> u64 {
        self.next_turn += 1;
        self.turns.insert(self.next_turn, user);
        self.next_turn
    }
}
