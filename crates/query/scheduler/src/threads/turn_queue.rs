//! Queue of tasks that wait for a turn, ordered by the thread time that their queries had.

use std::collections::BTreeMap;
use std::time::Duration;

use super::QueryShare;
use super::query_share::{LEVELS, OLD_LEVEL};

/// Time that a level gets for each unit of time of the levels after it, while tasks wait there: short queries delay
/// long ones, but never starve them. Measured in time rather than turns, since turns with long batches last longer.
const YOUNGER_SHARE: u32 = 7;

/// Multi-level feedback queue of waiting tasks: queries with less thread time go first (least attained service,
/// Kleinrock 1976); within a level they share the time by weight.
#[derive(Debug)]
pub(super) struct Queue<T> {
    levels: [Level<T>; LEVELS as usize],
    pushed: u64,
}

#[derive(Debug)]
struct Level<T> {
    waiting: BTreeMap<QueuePosition, T>,
    /// Position of the last task that got a turn.
    last_position: u64,
    /// Time owed to this level before later levels get a turn again.
    owed_time: Duration,
}

/// Position within a level: thread time of the query, then order of arrival.
type QueuePosition = (u64, u64);

impl<T> Default for Level<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), last_position: 0, owed_time: Duration::ZERO }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { levels: Default::default(), pushed: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds a waiting task.
    pub(super) fn push(&mut self, query: &QueryShare, task: T) {
        self.pushed += 1;
        let number = query.level();
        let level = &mut self.levels[usize::from(number)];
        // On the first level, the query with the least thread time goes first.
        let floor = if number == 0 { 0 } else { level.last_position };
        level.waiting.insert((query.advance_to(number, floor), self.pushed), task);
    }

    /// Removes the task that gets the next turn.
    pub(super) fn pop(&mut self) -> Option<T> {
        let mut chosen = self.first_level()?;
        while self.levels[chosen].owed_time.is_zero()
            && let Some(later) = (chosen + 1..self.levels.len()).find(|later| !self.levels[*later].waiting.is_empty())
        {
            chosen = later;
        }
        let level = &mut self.levels[chosen];
        let ((passed, _), task) = level.waiting.pop_first()?;
        level.last_position = passed;
        Some(task)
    }

    /// Removes the next task whose query was young when it began to wait.
    pub(super) fn pop_young(&mut self) -> Option<T> {
        let young = &mut self.levels[..usize::from(OLD_LEVEL)];
        young.iter_mut().find_map(|level| level.waiting.pop_first()).map(|(_, task)| task)
    }

    /// Accounts the time of a turn to a level.
    pub(super) fn account_turn(&mut self, level: u8, time: Duration) {
        let level = usize::from(level);
        self.levels[level].owed_time = self.levels[level].owed_time.saturating_sub(time);
        for younger in &mut self.levels[..level] {
            // A level without waiting tasks is owed nothing.
            younger.owed_time =
                if younger.waiting.is_empty() { Duration::ZERO } else { younger.owed_time + time * YOUNGER_SHARE };
        }
    }

    /// Returns the first level with waiting tasks.
    pub(super) fn first_level(&self) -> Option<usize> {
        self.levels.iter().position(|level| !level.waiting.is_empty())
    }
}
