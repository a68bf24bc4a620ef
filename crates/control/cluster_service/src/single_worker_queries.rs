//! Counts of the queries that each worker runs alone, so that many small queries on the same shards do not overload
//! their owner.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_model::WorkerId;
use parking_lot::Mutex;

/// Number of queries that each worker runs alone; workers without any have no entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct SingleWorkerQueries(Arc<Mutex<HashMap<WorkerId, u32>>>);

/// Guard that counts a query on its worker until it is dropped.
#[derive(Debug)]
pub(crate) struct QueryGuard {
    queries: SingleWorkerQueries,
    worker: WorkerId,
}

impl SingleWorkerQueries {
    /// Returns the number of queries for each of these workers.
    pub(crate) fn counts(&self, workers: &[WorkerId]) -> Vec<u32> {
        let counts = self.0.lock();
        workers.iter().map(|worker| counts.get(worker).copied().unwrap_or(0)).collect()
    }

    /// Counts one more query on a worker.
    pub(crate) fn register(&self, worker: WorkerId) -> QueryGuard {
        *self.0.lock().entry(worker).or_insert(0) += 1;
        QueryGuard { queries: self.clone(), worker }
    }
}

impl Drop for QueryGuard {
    fn drop(&mut self) {
        let mut counts = self.queries.0.lock();
        if let Some(count) = counts.get_mut(&self.worker) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.worker);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_counts_until_it_has_ended() {
        let (queries, one, other) = (SingleWorkerQueries::default(), WorkerId(1), WorkerId(2));
        let (first, second) = (queries.register(one), queries.register(one));
        assert_eq!(queries.counts(&[other, one]), [0, 2]);
        drop(first);
        assert_eq!(queries.counts(&[one]), [1]);
        drop(second);
        assert_eq!(queries.counts(&[one]), [0]);
        assert!(queries.0.lock().is_empty(), "workers without queries have no entry");
    }
}
