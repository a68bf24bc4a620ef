//! The queue of tasks that wait for their turn, by what their queries have had.

use std::collections::BTreeMap;
use std::time::Duration;

use super::QueryShare;
use super::share::{LEVELS, OLD_LEVEL};

/// A level has so much of the time for each part that the levels after it have, where somebody waits there: many short queries delay long
/// ones, and never stop them. By time and not by turns, which last longer where batches do.
const YOUNGER_TIMES: u32 = 7;

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
    /// What it is to have before later levels have anything again.
    due: Duration,
}

/// What its query has had, then the order in which they came.
type Place = (u64, u64);

impl<T> Default for Level<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), floor: 0, due: Duration::ZERO }
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
        while self.levels[chosen].due.is_zero()
            && let Some(later) = (chosen + 1..self.levels.len()).find(|later| !self.levels[*later].waiting.is_empty())
        {
            chosen = later;
        }
        let level = &mut self.levels[chosen];
        let ((passed, _), task) = level.waiting.pop_first()?;
        level.floor = passed;
        Some(task)
    }

    /// The next of those that were young when they began to wait.
    pub(super) fn pop_young(&mut self) -> Option<T> {
        let young = &mut self.levels[..usize::from(OLD_LEVEL)];
        young.iter_mut().find_map(|level| level.waiting.pop_first()).map(|(_, task)| task)
    }

    /// Counts a turn of a level.
    pub(super) fn count(&mut self, level: u8, time: Duration) {
        let level = usize::from(level);
        self.levels[level].due = self.levels[level].due.saturating_sub(time);
        for younger in &mut self.levels[..level] {
            // Where nobody waits, nobody is owed anything.
            younger.due = if younger.waiting.is_empty() { Duration::ZERO } else { younger.due + time * YOUNGER_TIMES };
        }
    }

    /// The level of who is next by age.
    pub(super) fn first(&self) -> Option<usize> {
        self.levels.iter().position(|level| !level.waiting.is_empty())
    }
}
