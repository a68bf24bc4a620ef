//! What a statement ran first: EXPLAIN ANALYZE tells afterwards what its operators did.

use std::sync::OnceLock;
use std::time::Duration;

use exchange::Prepared;

/// The first plan that a statement ran, and how long it took to plan.
#[derive(Debug, Default)]
pub struct Ran(OnceLock<(Prepared, Duration)>);

impl Ran {
    pub fn note(&self, prepared: &Prepared, planning: Duration) {
        // Later plans are of references and conflicts, which are no part of what was asked.
        let _ = self.0.set((prepared.clone(), planning));
    }

    pub fn first(&self) -> Option<(Prepared, Duration)> {
        self.0.get().cloned()
    }
}
