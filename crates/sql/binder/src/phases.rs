//! Timings of planning, from name resolution to compiled plans, as EXPLAIN (SUMMARY, VERBOSE) reports them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Clock;

/// Phase of planning a parsed query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Name resolution and the first logical plan.
    Names,
    /// Type resolution of all expressions.
    Types,
    /// Optimizer rules.
    Rules,
    /// Physical planning.
    Operators,
    /// Compilation of operators for the engine.
    Programs,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 5] = [Self::Names, Self::Types, Self::Rules, Self::Operators, Self::Programs];

    /// Returns the name in EXPLAIN.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Names => "Names",
            Self::Types => "Types",
            Self::Rules => "Rules",
            Self::Operators => "Operators",
            Self::Programs => "Programs",
        }
    }
}

/// Time spent in each phase of planning a query. Clones share their counters; the default measures nothing.
#[derive(Debug, Clone, Default)]
pub struct Phases(Option<Arc<Measured>>);

#[derive(Debug)]
struct Measured {
    clock: Arc<dyn Clock>,
    nanoseconds: [AtomicU64; Phase::ALL.len()],
}

/// Start time of a phase.
#[derive(Debug, Clone, Copy)]
pub struct Begun(Duration);

impl Phases {
    pub(crate) fn by(clock: &Arc<dyn Clock>) -> Self {
        Self(Some(Arc::new(Measured { clock: Arc::clone(clock), nanoseconds: Default::default() })))
    }

    /// Returns fresh counters with the same clock.
    #[must_use]
    pub fn anew(&self) -> Self {
        self.0.as_ref().map_or_else(Self::default, |measured| Self::by(&measured.clock))
    }

    /// Starts a phase, which [`Phases::end`] ends.
    #[must_use]
    pub fn begin(&self) -> Begun {
        Begun(self.0.as_ref().map_or(Duration::ZERO, |measured| measured.clock.monotonic()))
    }

    /// Adds the time since `begun` to a phase, and returns the start time of the next one.
    pub fn end(&self, phase: Phase, begun: Begun) -> Begun {
        let now = self.begin();
        if let Some(measured) = &self.0 {
            let spent = u64::try_from(now.0.saturating_sub(begun.0).as_nanos()).unwrap_or(u64::MAX);
            measured.nanoseconds[phase as usize].fetch_add(spent, Ordering::Relaxed);
        }
        now
    }

    /// Returns the time spent in a phase.
    #[must_use]
    pub fn spent(&self, phase: Phase) -> Duration {
        let spent = self.0.as_ref().map_or(0, |measured| measured.nanoseconds[phase as usize].load(Ordering::Relaxed));
        Duration::from_nanos(spent)
    }
}
