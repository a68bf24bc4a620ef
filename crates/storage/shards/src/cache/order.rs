//! In which order a scan tries its predicates on pages.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use types::conjuncts::Place;
use types::{Clock, Conjuncts};

/// What one worker of a scan has seen its predicates do, from part to part. Its own: nobody waits for the lock.
#[derive(Debug, Default)]
pub struct PredicateOrder {
    clock: Option<Arc<dyn Clock>>,
    conjuncts: Mutex<Conjuncts>,
}

impl PredicateOrder {
    /// Nothing seen yet; by `clock` it is told what a predicate costs.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    /// Of so many predicates, none of which fails. Where these have become more, as filters learn, it begins anew.
    pub(super) fn of(&self, predicates: usize) -> MutexGuard<'_, Conjuncts> {
        let mut conjuncts = self.conjuncts.lock();
        if conjuncts.len() != predicates {
            *conjuncts = Conjuncts::new(vec![Place::Movable; predicates]);
        }
        conjuncts
    }

    /// Nanoseconds since some moment; always the same where nobody tells the time.
    pub(super) fn now_ns(&self) -> u64 {
        let since = self.clock.as_ref().map(|clock| clock.monotonic().as_nanos());
        since.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
