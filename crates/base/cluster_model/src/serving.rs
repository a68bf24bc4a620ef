//! Which workers of a cluster get work, and how far a cluster is, of what was last observed.

use std::fmt;
use std::time::Duration;

use crate::desired::{ClusterId, ClusterState, DesiredState};
use crate::reconcile::Settings;
use crate::worker::{Worker, WorkerState};

#[cfg(test)]
mod tests;

/// The workers that a new statement on the cluster is given to, by slot: one for each of its slots at most. Those that hang, drain, are
/// of another version or not up yet are left out, and so are all of a cluster that should sleep.
#[must_use]
pub fn serving<'a>(
    cluster: &ClusterState,
    workers: &'a [Worker],
    now: Duration,
    settings: &Settings,
) -> Vec<&'a Worker> {
    let wanted = cluster.wanted_workers();
    let mut serving: Vec<&Worker> = workers
        .iter()
        .filter(|worker| worker.cluster == cluster.id && worker.slot < wanted && is_able(worker, now, settings))
        .collect();
    // While hardware is exchanged a slot may have two: then the new one, else who has been there longest.
    let is_old = |worker: &Worker| worker.spec.hardware_instance != cluster.spec.hardware_instance;
    serving.sort_by_key(|worker| (worker.slot, is_old(worker), worker.since, worker.id));
    serving.dedup_by_key(|worker| worker.slot);
    serving
}

/// Whether the worker could do something now.
fn is_able(worker: &Worker, now: Duration, settings: &Settings) -> bool {
    worker.state == WorkerState::Ready
        && !worker.hung
        && now.saturating_sub(worker.heard) < settings.hung_after
        && !worker.is_other_version(&settings.version)
}

/// How far a cluster is on its way to what it should be, as `sys.cluster` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// As many workers as it should have get work, on the hardware that it should have, and there are no others.
    Running,
    /// Some of its workers get work, and others are to come or to go.
    Resizing,
    /// It should be awake, and none of its workers gets work yet.
    Starting,
    /// It should sleep, and some of its workers are still there.
    Suspending,
    /// It sleeps.
    Suspended,
    /// It is dropped, and some of its workers are still there.
    Dropping,
}

/// How far the cluster is; `None` where there is no such cluster and no worker of one.
#[must_use]
pub fn phase(
    desired: &DesiredState,
    cluster: ClusterId,
    workers: &[Worker],
    now: Duration,
    settings: &Settings,
) -> Option<Phase> {
    let own = || workers.iter().filter(|worker| worker.cluster == cluster && worker.state != WorkerState::Gone);
    let living = own().count();
    let Some(cluster) = desired.cluster(cluster) else {
        return (0 < living).then_some(Phase::Dropping);
    };
    if cluster.suspended {
        return Some(if living == 0 { Phase::Suspended } else { Phase::Suspending });
    }
    let serving = serving(cluster, workers, now, settings);
    let is_right = |worker: &&&Worker| worker.spec.hardware_instance == cluster.spec.hardware_instance;
    let (right, wanted) = (serving.iter().filter(is_right).count(), cluster.spec.node_count as usize);
    Some(match serving.len() {
        0 => Phase::Starting,
        _ if right == wanted && living == wanted => Phase::Running,
        _ => Phase::Resizing,
    })
}

impl fmt::Display for Phase {
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
