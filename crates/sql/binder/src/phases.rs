//! How long the steps from a statement's names to what runs take. EXPLAIN (SUMMARY, VERBOSE) tells it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Clock;

/// A step on the way from a parsed query to what runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// What names mean, and the first plan.
    Names,
    /// Types of all expressions.
    Types,
    /// The optimizer's rules.
    Rules,
    Operators,
    /// The engine's programs in the place of operators.
    Programs,
}

impl Phase {
    /// In their order.
    pub const ALL: [Self; 5] = [Self::Names, Self::Types, Self::Rules, Self::Operators, Self::Programs];

    /// What EXPLAIN calls it.
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

/// The time that one planning of a query spends in each phase. Copies add to the same; by default nothing is measured.
#[derive(Debug, Clone, Default)]
pub struct Phases(Option<Arc<Measured>>);

#[derive(Debug)]
struct Measured {
    clock: Arc<dyn Clock>,
    nanoseconds: [AtomicU64; Phase::ALL.len()],
}

/// When a phase began.
#[derive(Debug, Clone, Copy)]
pub struct Begun(Duration);

impl Phases {
    pub(crate) fn by(clock: &Arc<dyn Clock>) -> Self {
        Self(Some(Arc::new(Measured { clock: Arc::clone(clock), nanoseconds: Default::default() })))
    }

    /// As before anything was measured.
    #[must_use]
    pub fn anew(&self) -> Self {
        self.0.as_ref().map_or_else(Self::default, |measured| Self::by(&measured.clock))
    }

    /// A phase begins, which is to be ended by [`Phases::end`].
    #[must_use]
    pub fn begin(&self) -> Begun {
        Begun(self.0.as_ref().map_or(Duration::ZERO, |measured| measured.clock.monotonic()))
    }

    /// Adds the time since a phase began to what it has taken already; the next may begin then.
    pub fn end(&self, phase: Phase, begun: Begun) -> Begun {
        let now = self.begin();
        if let Some(measured) = &self.0 {
            let spent = u64::try_from(now.0.saturating_sub(begun.0).as_nanos()).unwrap_or(u64::MAX);
            measured.nanoseconds[phase as usize].fetch_add(spent, Ordering::Relaxed);
        }
        now
    }

    /// What a phase has taken.
    #[must_use]
    pub fn spent(&self, phase: Phase) -> Duration {
        let spent = self.0.as_ref().map_or(0, |measured| measured.nanoseconds[phase as usize].load(Ordering::Relaxed));
        Duration::from_nanos(spent)
    }
}
