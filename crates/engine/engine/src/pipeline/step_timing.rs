//! Per-worker measurement of the time spent in each step.

use std::sync::Arc;

/// Clock that returns nanoseconds since an arbitrary moment, the same for all workers of a program.
pub type NanoClock = dyn Fn() -> u64 + Send + Sync;

/// Time span and busy time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyTime {
    /// Nanoseconds spent in the step itself, without the steps downstream of it.
    pub self_ns: u64,
    /// Clock value when the step was first entered.
    pub first_ns: u64,
    /// Clock value when the step was last left.
    pub last_ns: u64,
}

impl BusyTime {
    /// Creates a measurement of a step that was busy for the whole interval.
    #[must_use]
    pub fn from_interval(first_ns: u64, last_ns: u64) -> Self {
        Self { self_ns: last_ns.saturating_sub(first_ns), first_ns, last_ns }
    }

    /// Combines two measurements: adds the busy times and covers both intervals.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            self_ns: self.self_ns + other.self_ns,
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }
}

/// Stopwatch that attributes elapsed time to the step, or the sink, that currently processes a batch.
#[derive(Default)]
pub(super) struct StepTimer {
    /// Clock; `None` if time is not measured.
    now: Option<Arc<NanoClock>>,
    /// Measurements by the number of steps that are still ahead; index 0 is the sink.
    busy: Vec<Option<BusyTime>>,
    /// Index into `busy` of the step that processes the batch; `None` outside of the pipeline.
    current: Option<usize>,
    /// Clock value at which `current` last changed.
    since_ns: u64,
}

impl StepTimer {
    pub(super) fn new(now: Option<Arc<NanoClock>>, steps: usize) -> Self {
        Self { now, busy: vec![None; steps + 1], current: None, since_ns: 0 }
    }

    /// Enters the step with `ahead` steps after it; returns the previous position for [`StepTimer::leave`].
    #[inline]
    pub(super) fn enter(&mut self, ahead: usize) -> Option<usize> {
        self.switch_to(Some(ahead))
    }

    /// Returns to the position that [`StepTimer::enter`] returned.
    #[inline]
    pub(super) fn leave(&mut self, to: Option<usize>) {
        self.switch_to(to);
    }

    /// Attributes the time since the last switch to the current position, then moves to another.
    fn switch_to(&mut self, to: Option<usize>) -> Option<usize> {
        let now_ns = self.now.as_ref()?();
        if let Some(at) = self.current {
            let stretch = BusyTime::from_interval(self.since_ns, now_ns);
            let busy = &mut self.busy[at];
            *busy = Some(busy.map_or(stretch, |before| before.merge(stretch)));
        }
        self.since_ns = now_ns;
        std::mem::replace(&mut self.current, to)
    }

    /// Returns the measurements of the steps in order, then the sink's.
    pub(super) fn step_times(&self) -> impl Iterator<Item = Option<BusyTime>> {
        self.busy.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn busy_time_excludes_downstream_steps() {
        let clock = AtomicU64::new(0);
        // Every reading of the clock advances it by ten nanoseconds.
        let mut step_timer = StepTimer::new(Some(Arc::new(move || clock.fetch_add(10, Ordering::Relaxed))), 2);
        for _ in 0..2 {
            let outside = step_timer.enter(2);
            let first = step_timer.enter(0);
            step_timer.leave(first);
            step_timer.leave(outside);
        }
        let busy: Vec<_> = step_timer.step_times().collect();
        let expected = [
            Some(BusyTime { self_ns: 40, first_ns: 0, last_ns: 70 }),
            None,
            Some(BusyTime { self_ns: 20, first_ns: 10, last_ns: 60 }),
        ];
        assert_eq!(busy, expected);
    }
}
