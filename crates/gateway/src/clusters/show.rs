//! What the system tables show of clusters and workers.

use cluster::{ClusterEvent, ControlPlane};
use planner::{ClusterRow, WorkerRow};

use super::Clusters;

impl Clusters {
    pub(crate) fn cluster_rows(&self) -> Vec<ClusterRow> {
        let desired = self.plane.desired();
        let rows = desired.clusters().map(|cluster| {
            let snapshot = self.gate(cluster.id).map(|gate| gate.snapshot());
            let (admission, totals) =
                (snapshot.as_ref(), snapshot.as_ref().map(|known| known.totals).unwrap_or_default());
            ClusterRow {
                spec: cluster.spec.clone(),
                ready: count(self.plane.serving(cluster.id).len()),
                state: self.plane.phase(cluster.id),
                max_running: admission.map_or(0, |known| known.limits.running),
                running: admission.map_or(0, |known| known.running),
                queued: admission.map_or(0, |known| count(known.queued.len())),
                admitted: totals.admitted,
                waited: totals.waited,
                longest_wait: totals.longest_wait,
                created_us: cluster.created_at,
                created_by: cluster.created_by.clone(),
                changed_us: cluster.changed_at,
                changed_by: cluster.changed_by.clone(),
            }
        });
        rows.collect()
    }

    pub(crate) fn worker_rows(&self) -> Vec<WorkerRow> {
        let (desired, workers) = (self.plane.desired(), self.plane.workers());
        let rows = workers.iter().map(|worker| WorkerRow {
            cluster: desired.cluster(worker.cluster).map(|cluster| cluster.spec.name.clone()),
            memory_used: self.workers.memory_used(worker.id),
            worker: worker.clone(),
        });
        rows.collect()
    }

    pub(crate) fn events(&self) -> Vec<ClusterEvent> {
        self.plane.events()
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
