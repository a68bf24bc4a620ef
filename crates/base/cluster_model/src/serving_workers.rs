//! The workers of a cluster that get statements, and the cluster's phase, from the last observation.

use std::fmt;
use std::time::Duration;

use crate::desired_state::{ClusterId, ClusterState, DesiredState};
use crate::reconcile::ReconcileSettings;
use crate::worker::{Worker, WorkerState};

#[cfg(test)]
mod tests;

/// Returns the workers that a new statement on the cluster runs on, by slot, at most one of each slot. Workers that are
/// hung, draining, starting or of another version are excluded, and all workers of a suspended cluster.
#[must_use]
pub fn serving_workers<'a>(
    cluster: &ClusterState,
    workers: &'a [Worker],
    now: Duration,
    settings: &ReconcileSettings,
) -> Vec<&'a Worker> {
    let wanted = cluster.wanted_workers();
    let mut serving: Vec<&Worker> = workers
        .iter()
        .filter(|worker| worker.cluster == cluster.id && worker.slot < wanted && can_serve(worker, now, settings))
        .collect();
    // During a change of hardware a slot may have two workers: prefer the new hardware, then the oldest worker.
    let is_old = |worker: &Worker| worker.spec.hardware_instance != cluster.spec.hardware_instance;
    serving.sort_by_key(|worker| (worker.slot, is_old(worker), worker.state_since, worker.id));
    serving.dedup_by_key(|worker| worker.slot);
    serving
}

/// Whether the worker can run statements now.
fn can_serve(worker: &Worker, now: Duration, settings: &ReconcileSettings) -> bool {
    worker.state == WorkerState::Ready
        && !worker.hung
        && now.saturating_sub(worker.last_heartbeat) < settings.hung_after
        && !worker.is_other_version(&settings.version)
}

/// Phase of a cluster: its progress towards the desired state, as `sys.cluster` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusterPhase {
    /// The desired number of workers serves on the desired hardware, and there are no others.
    Running,
    /// Some workers serve, and others are starting or leaving.
    Resizing,
    /// The cluster is not suspended, and none of its workers serves yet.
    Starting,
    /// The cluster is suspended, and some of its workers still run.
    Suspending,
    /// The cluster is suspended and has no workers.
    Suspended,
    /// The cluster is dropped, and some of its workers still run.
    Dropping,
}

/// Returns the phase of the cluster; `None` if neither it nor any worker of it exists.
#[must_use]
pub fn cluster_phase(
    desired: &DesiredState,
    cluster: ClusterId,
    workers: &[Worker],
    now: Duration,
    settings: &ReconcileSettings,
) -> Option<ClusterPhase> {
    let own = || workers.iter().filter(|worker| worker.cluster == cluster && worker.state != WorkerState::Gone);
    let living = own().count();
    let Some(cluster) = desired.cluster(cluster) else {
        return (0 < living).then_some(ClusterPhase::Dropping);
    };
    if cluster.suspended {
        return Some(if living == 0 { ClusterPhase::Suspended } else { ClusterPhase::Suspending });
    }
    let serving = serving_workers(cluster, workers, now, settings);
    let is_right = |worker: &&&Worker| worker.spec.hardware_instance == cluster.spec.hardware_instance;
    let (right, wanted) = (serving.iter().filter(is_right).count(), cluster.spec.node_count as usize);
    Some(match serving.len() {
        0 => ClusterPhase::Starting,
        _ if right == wanted && living == wanted => ClusterPhase::Running,
        _ => ClusterPhase::Resizing,
    })
}

impl fmt::Display for ClusterPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Resizing => "resizing",
            Self::Starting => "starting",
            Self::Suspending => "suspending",
            Self::Suspended => "suspended",
            Self::Dropping => "dropping",
        })
    }
}
