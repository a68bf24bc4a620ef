//! Whose turn is next.

use std::collections::BTreeMap;

use super::QueryShare;

/// Of so many turns one is for queries that are no longer young, where they wait: many short ones delay them, and never stop them.
const OLD_EVERY: u64 = 4;

/// Tasks that wait for a turn. Young queries come first, of these the one that has had least; among the others each gets its share.
#[derive(Debug)]
pub(super) struct Queue<T> {
    young: BTreeMap<Place, T>,
    old: BTreeMap<Place, T>,
    pushed: u64,
    /// Turns that young queries had in a row while others waited.
    young_turns: u64,
    /// Where the last of the others was.
    floor: u64,
}

/// What its query has had, then the order in which they came.
type Place = (u64, u64);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new(), pushed: 0, young_turns: 0, floor: 0 }
    }
}

impl<T> Queue<T> {
    pub(super) fn push(&mut self, query: &QueryShare, task: T) {
        self.pushed += 1;
        if query.is_young() {
            self.young.insert((query.passed(), self.pushed), task);
        } else {
            self.old.insert((query.catch_up(self.floor), self.pushed), task);
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let is_olds_turn = self.young.is_empty() || OLD_EVERY <= self.young_turns + 1;
        if is_olds_turn && let Some(((passed, _), task)) = self.old.pop_first() {
            self.young_turns = 0;
            self.floor = passed;
            return Some(task);
        }
        let (_, task) = self.young.pop_first()?;
        self.young_turns = if self.old.is_empty() { 0 } else { self.young_turns + 1 };
        Some(task)
    }
}
