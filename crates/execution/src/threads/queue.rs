//! Whose turn is next.

use std::collections::BTreeMap;

use super::QueryShare;
use super::share::LEVELS;

/// Of so many turns of a level one is for the levels after it, where somebody waits there: many short queries delay long ones, and never
/// stop them.
const LATER_EVERY: u64 = 4;

/// Tasks that wait for a turn, by how much their queries have had: the younger go first, at all scales (least attained service, Kleinrock
/// 1976), and those of a level get their shares of its turns.
#[derive(Debug)]
pub(super) struct Queue<T> {
    levels: [Level<T>; LEVELS as usize],
    pushed: u64,
}

#[derive(Debug)]
struct Level<T> {
    waiting: BTreeMap<Place, T>,
    /// Where the last one that had a turn was.
    floor: u64,
    /// Turns in a row while others waited in later levels.
    turns: u64,
}

/// What its query has had, then the order in which they came.
type Place = (u64, u64);

impl<T> Default for Level<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), floor: 0, turns: 0 }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { levels: Default::default(), pushed: 0 }
    }
}

impl<T> Queue<T> {
    pub(super) fn push(&mut self, query: &QueryShare, task: T) {
        self.pushed += 1;
        let number = query.level();
        let level = &mut self.levels[usize::from(number)];
        // Of those that have just begun the one that has had least goes first.
        let floor = if number == 0 { 0 } else { level.floor };
        level.waiting.insert((query.catch_up(number, floor), self.pushed), task);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let mut chosen = self.first()?;
        while let Some(later) = (chosen + 1..self.levels.len()).find(|later| !self.levels[*later].waiting.is_empty()) {
            let level = &mut self.levels[chosen];
            level.turns += 1;
            if level.turns < LATER_EVERY {
                break;
            }
            level.turns = 0;
            chosen = later;
        }
        let level = &mut self.levels[chosen];
        let ((passed, _), task) = level.waiting.pop_first()?;
        level.floor = passed;
        Some(task)
    }

    /// The level of who is next by age.
    pub(super) fn first(&self) -> Option<usize> {
        self.levels.iter().position(|level| !level.waiting.is_empty())
    }
}
