//! How long one worker is busy with each step.

use std::sync::Arc;

/// Nanoseconds since some moment, the same for all workers of a program.
pub type Now = dyn Fn() -> u64 + Send + Sync;

/// When a step was busy, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// Without the steps that it hands batches to.
    pub own_ns: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Busy {
    /// From one moment to another.
    #[must_use]
    pub fn between(first_ns: u64, last_ns: u64) -> Self {
        Self { own_ns: last_ns.saturating_sub(first_ns), first_ns, last_ns }
    }

    /// Of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            own_ns: self.own_ns + other.own_ns,
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }
}

/// Time by the place that a batch is at: a step, the sink, or outside.
#[derive(Default)]
pub(super) struct Meter {
    /// `None` where nobody asks.
    now: Option<Arc<Now>>,
    /// By how many steps are ahead; the sink has none.
    busy: Vec<Option<Busy>>,
    /// Where the batch is; `None` outside.
    at: Option<usize>,
    since_ns: u64,
}

impl Meter {
    pub(super) fn new(now: Option<Arc<Now>>, steps: usize) -> Self {
        Self { now, busy: vec![None; steps + 1], at: None, since_ns: 0 }
    }

    /// A batch comes to where so many steps are ahead; gives where it comes from.
    #[inline]
    pub(super) fn enter(&mut self, ahead: usize) -> Option<usize> {
        self.go_to(Some(ahead))
    }

    /// It is back where it has come from.
    #[inline]
    pub(super) fn leave(&mut self, to: Option<usize>) {
        self.go_to(to);
    }

    fn go_to(&mut self, to: Option<usize>) -> Option<usize> {
        let now_ns = self.now.as_ref()?();
        if let Some(at) = self.at {
            let stretch = Busy::between(self.since_ns, now_ns);
            let busy = &mut self.busy[at];
            *busy = Some(busy.map_or(stretch, |before| before.and(stretch)));
        }
        self.since_ns = now_ns;
        std::mem::replace(&mut self.at, to)
    }

    /// Of each step, and of the sink.
    pub(super) fn of_steps(&self) -> impl Iterator<Item = Option<Busy>> {
        self.busy.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_step_is_busy_without_those_that_it_hands_batches_to() {
        let clock = AtomicU64::new(0);
        // Each look at the clock is ten nanoseconds after the one before.
        let mut meter = Meter::new(Some(Arc::new(move || clock.fetch_add(10, Ordering::Relaxed))), 2);
        for _ in 0..2 {
            let outside = meter.enter(2);
            let first = meter.enter(0);
            meter.leave(first);
            meter.leave(outside);
        }
        let busy: Vec<_> = meter.of_steps().collect();
        let expected = [
            Some(Busy { own_ns: 40, first_ns: 0, last_ns: 70 }),
            None,
            Some(Busy { own_ns: 20, first_ns: 10, last_ns: 60 }),
        ];
        assert_eq!(busy, expected);
    }
}
