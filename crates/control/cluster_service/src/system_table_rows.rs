//! Rows of the system tables about clusters and workers.

use cluster_model::{ClusterEvent, Worker, WorkerState};
use session_context::{ClusterRow, WorkerCacheStatistics, WorkerRow};

use crate::clusters::Clusters;

impl Clusters {
    /// Returns the rows of `sys.cluster`.
    pub fn cluster_rows(&self) -> Vec<ClusterRow> {
        let desired = self.plane.desired();
        let rows = desired.clusters().map(|cluster| {
            let snapshot = self.admission(cluster.id).map(|gate| gate.snapshot());
            let (admission, totals) =
                (snapshot.as_ref(), snapshot.as_ref().map(|known| known.totals).unwrap_or_default());
            ClusterRow {
                spec: cluster.spec.clone(),
                ready_workers: saturating_u32(self.owning_workers(cluster.id).len()),
                state: self.plane.phase(cluster.id),
                max_running: admission.map_or(0, |known| known.limits.running),
                running_statements: admission.map_or(0, |known| known.running),
                queued_statements: admission.map_or(0, |known| saturating_u32(known.queued.len())),
                admitted_statements: totals.admitted,
                waited_statements: totals.waited,
                longest_wait: totals.longest_wait,
                created_us: cluster.created_at,
                created_by: cluster.created_by.clone(),
                changed_us: cluster.changed_at,
                changed_by: cluster.changed_by.clone(),
            }
        });
        rows.collect()
    }

    /// Returns the rows of `sys.worker`.
    pub fn worker_rows(&self) -> Vec<WorkerRow> {
        let (desired, workers) = (self.plane.desired(), self.plane.workers());
        let rows = workers.iter().map(|worker| WorkerRow {
            cluster: desired.cluster(worker.cluster).map(|cluster| cluster.spec.name.clone()),
            memory_used: self.process_memory(worker.id).unwrap_or_else(|| self.workers.memory_used(worker.id)),
            cache_uses: self
                .processes
                .as_ref()
                .and_then(|processes| processes.cache_statistics(worker.id))
                .map(cache_statistics),
            shares_cache: self.process_memory(worker.id).is_none(),
            worker: self.displayed_worker(worker),
        });
        rows.collect()
    }

    /// Returns a worker as it is shown: one that is warming its cache counts as starting, because it gets no statements
    /// yet.
    fn displayed_worker(&self, worker: &Worker) -> Worker {
        if worker.is_handing_over && worker.state == WorkerState::Ready {
            return Worker { detail: Some("handing over its cache".to_owned()), ..worker.clone() };
        }
        if worker.state != WorkerState::Ready || self.owns_parts(worker) {
            return worker.clone();
        }
        Worker { state: WorkerState::Starting, detail: Some("warming its cache".to_owned()), ..worker.clone() }
    }

    /// Returns the memory used by a worker process; `None` for a worker in this process.
    fn process_memory(&self, worker: cluster_model::WorkerId) -> Option<u64> {
        self.processes.as_ref()?.memory_used(worker)
    }

    /// Returns the rows of `sys.cluster_event`, oldest first.
    pub fn events(&self) -> Vec<ClusterEvent> {
        self.plane.events()
    }
}

fn cache_statistics(of: fleet::CacheStatistics) -> WorkerCacheStatistics {
    WorkerCacheStatistics {
        hits: of.hits,
        misses: of.misses,
        prewarmed_shards: of.warming.shards,
        prewarmed_blocks: of.warming.blocks,
        prewarming_skipped: of.warming.dropped,
    }
}

/// Converts a count, saturating.
fn saturating_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
