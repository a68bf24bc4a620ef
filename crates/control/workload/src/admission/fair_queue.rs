//! Fair queue: weighted round robin over users, first in first out for the items of each user.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// Queue of items by user. Items must be pushed in ascending order.
#[derive(Debug, Clone)]
pub(super) struct FairQueue<K, T> {
    /// Queues of the users that have items.
    users: HashMap<K, UserQueue<T>>,
    /// Users by the number of their next turn.
    turns: BTreeMap<u64, K>,
    next_turn: u64,
    len: usize,
}

/// Queue of one user.
#[derive(Debug, Clone)]
struct UserQueue<T> {
    items: BTreeSet<T>,
    /// Number of the user's next turn.
    turn: u64,
    weight: u32,
    /// Number of items that may still leave in this turn.
    remaining_in_turn: u32,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        FairQueue { users: HashMap::new(), turns: BTreeMap::new(), next_turn: 0, len: 0 }
    }
}

impl<K: Copy + Eq + Hash, T: Copy + Ord> FairQueue<K, T> {
    /// Adds an item, which must be greater than all items of its user. A user without items gets the last turn. At each
    /// turn, `weight` items of the user leave, at least one.
    pub(super) fn push(&mut self, user: K, weight: u32, item: T) {
        self.len += 1;
        let weight = weight.max(1);
        if let Some(line) = self.users.get_mut(&user) {
            line.items.insert(item);
            line.weight = weight;
            return;
        }
        let turn = self.append_turn(user);
        self.users.insert(user, UserQueue { items: BTreeSet::from([item]), turn, weight, remaining_in_turn: weight });
    }

    /// Removes the next item.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (turn, user) = self.turns.first_key_value().map(|(turn, user)| (*turn, *user))?;
        let line = self.users.get_mut(&user).expect("each user with a turn has a queue");
        let item = line.items.pop_first().expect("a user's queue is never empty");
        self.len -= 1;
        line.remaining_in_turn -= 1;
        if line.items.is_empty() {
            self.users.remove(&user);
            self.turns.remove(&turn);
        } else if line.remaining_in_turn == 0 {
            line.remaining_in_turn = line.weight;
            self.turns.remove(&turn);
            let next = self.append_turn(user);
            self.users.get_mut(&user).expect("the user's queue still has items").turn = next;
        }
        Some(item)
    }

    /// Removes an item from any position; returns false if it is not in the queue.
    pub(super) fn remove(&mut self, user: &K, item: T) -> bool {
        let Some(line) = self.users.get_mut(user) else { return false };
        if !line.items.remove(&item) {
            return false;
        }
        self.len -= 1;
        if line.items.is_empty() {
            self.turns.remove(&line.turn);
            self.users.remove(user);
        }
        true
    }

    /// Returns all items in the order in which they leave if none is added.
    pub(super) fn ordered_items(&self) -> Vec<T> {
        let mut rest = self.clone();
        std::iter::from_fn(|| rest.pop()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether every entry belongs to a user with items.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        self.users.len() == self.turns.len() && self.users.values().all(|line| !line.items.is_empty())
    }

    /// Appends a turn for a user and returns its number.
    fn append_turn(&mut self, user: K) -> u64 {
        self.next_turn += 1;
        self.turns.insert(self.next_turn, user);
        self.next_turn
    }
}
