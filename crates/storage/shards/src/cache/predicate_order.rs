//! Adaptive order of predicates on pages.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use types::conjunct_order::Mobility;
use types::{Clock, ConjunctOrder};

/// Observed cost and selectivity of a scan's predicates, carried from one part of the scan to the next. Each worker has
/// its own, so the lock is never contended.
#[derive(Debug, Default)]
pub struct PredicateOrder {
    /// Measures evaluation time; without it, all predicates seem to cost nothing.
    clock: Option<Arc<dyn Clock>>,
    /// Observations so far, and the order that follows from them.
    conjuncts: Mutex<ConjunctOrder>,
}

impl PredicateOrder {
    /// Returns an order without observations; `clock` measures the cost of predicates.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    /// Locks the observations for this number of predicates, none of which may fail. Observations are reset when the
    /// number changes because runtime filters were added.
    pub(super) fn lock_conjuncts(&self, predicates: usize) -> MutexGuard<'_, ConjunctOrder> {
        let mut conjuncts = self.conjuncts.lock();
        if conjuncts.len() != predicates {
            *conjuncts = ConjunctOrder::new(vec![Mobility::Movable; predicates]);
        }
        conjuncts
    }

    /// Returns nanoseconds since an arbitrary start; always 0 without a clock.
    pub(super) fn now_ns(&self) -> u64 {
        let since = self.clock.as_ref().map(|clock| clock.monotonic().as_nanos());
        since.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
