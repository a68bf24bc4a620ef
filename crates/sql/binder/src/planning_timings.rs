//! Timings of planning, from name resolution to compiled plans, as EXPLAIN (SUMMARY, VERBOSE) reports them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Clock;

/// Phase of planning a parsed query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanningPhase {
    /// Name resolution and the first logical plan.
    NameResolution,
    /// Type resolution of all expressions.
    TypeResolution,
    /// Optimizer rules.
    Optimization,
    /// Physical planning.
    PhysicalPlanning,
    /// Compilation of operators for the engine.
    Compilation,
}

impl PlanningPhase {
    /// All phases in order.
    pub const ALL: [Self; 5] =
        [Self::NameResolution, Self::TypeResolution, Self::Optimization, Self::PhysicalPlanning, Self::Compilation];

    /// Returns the name in EXPLAIN.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NameResolution => "Names",
            Self::TypeResolution => "Types",
            Self::Optimization => "Rules",
            Self::PhysicalPlanning => "Operators",
            Self::Compilation => "Programs",
        }
    }
}

/// Time spent in each phase of planning a query. Clones share their counters; the default measures nothing.
#[derive(Debug, Clone, Default)]
pub struct PlanningTimings(Option<Arc<TimingCounters>>);

#[derive(Debug)]
struct TimingCounters {
    clock: Arc<dyn Clock>,
    nanoseconds: [AtomicU64; PlanningPhase::ALL.len()],
}

/// Start time of a phase.
#[derive(Debug, Clone, Copy)]
pub struct PhaseStart(Duration);

impl PlanningTimings {
    pub(crate) fn with_clock(clock: &Arc<dyn Clock>) -> Self {
        Self(Some(Arc::new(TimingCounters { clock: Arc::clone(clock), nanoseconds: Default::default() })))
    }

    /// Returns fresh counters with the same clock.
    #[must_use]
    pub fn reset_copy(&self) -> Self {
        self.0.as_ref().map_or_else(Self::default, |measured| Self::with_clock(&measured.clock))
    }

    /// Starts a phase, which [`PlanningTimings::end`] ends.
    #[must_use]
    pub fn start(&self) -> PhaseStart {
        PhaseStart(self.0.as_ref().map_or(Duration::ZERO, |measured| measured.clock.monotonic()))
    }

    /// Adds the time since `begun` to a phase, and returns the start time of the next one.
    pub fn end(&self, phase: PlanningPhase, begun: PhaseStart) -> PhaseStart {
        let now = self.start();
        if let Some(measured) = &self.0 {
            let spent = u64::try_from(now.0.saturating_sub(begun.0).as_nanos()).unwrap_or(u64::MAX);
            measured.nanoseconds[phase as usize].fetch_add(spent, Ordering::Relaxed);
        }
        now
    }

    /// Returns the time spent in a phase.
    #[must_use]
    pub fn spent(&self, phase: PlanningPhase) -> Duration {
        let spent = self.0.as_ref().map_or(0, |measured| measured.nanoseconds[phase as usize].load(Ordering::Relaxed));
        Duration::from_nanos(spent)
    }
}
