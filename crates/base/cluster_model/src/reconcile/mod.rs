//! Reconciliation: a pure function from the desired state and the observed workers to actions.
//!
//! It is stateless: each pass considers everything, so that a lost action is repeated and a new instance continues
//! where the old one stopped. Ended workers stay observed for a while, and their number is the number of a slot's
//! failures.
//!
//! A slot is the position of one worker in its cluster; a cluster has slots 0 to NODE_COUNT - 1.
//!
//! - `slot_workers.rs`: the actions of one slot
//! - `restart_backoff.rs`: the pause of a slot after failures
//! - `worker_share.rs`: a worker's share of the machine
//! - `idle_suspension.rs`: suspension of idle clusters
//!
//! Sequences of passes are tested in `control_plane`, which has worker hosts.

mod idle_suspension;
mod restart_backoff;
mod slot_workers;
mod worker_share;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::desired_state::{ClusterId, DesiredState};
use crate::stop_reason::StopReason;
use crate::worker::{Resources, Worker, WorkerId, WorkerSpec};

pub use idle_suspension::suspend_idle;
pub use worker_share::worker_share;

use slot_workers::SlotReconciler;

/// Parameters of reconciliation: version, machine, timeouts and backoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// Version of the instance. Workers of another version get no statements and are replaced.
    pub version: String,
    /// Cores and memory of all workers together: the machine without the instance's own share.
    pub all_workers_resources: Resources,
    /// Silence after which a worker is hung and gets no statements.
    pub hung_after: Duration,
    /// Silence after which a worker is stopped and replaced.
    pub replace_hung_after: Duration,
    /// Time after which a worker that has not joined is stopped and replaced.
    pub start_timeout: Duration,
    /// Time after which a draining worker is stopped, with the statements that still run on it.
    pub drain_grace: Duration,
    /// Pause of a slot after its first failure; each further failure doubles it.
    pub backoff_initial: Duration,
    /// Longest pause of a slot.
    pub backoff_max: Duration,
    /// Time that a worker must be ready before its slot's failures are forgotten.
    pub stable_after: Duration,
    /// Time that a regularly stopped worker stays visible.
    pub ended_worker_retention: Duration,
    /// Number of slots of a cluster, at least 1, that may have an old and a new worker at a time while hardware
    /// changes.
    pub surge_slots_max: usize,
}

impl ReconcileSettings {
    /// Creates settings with default timeouts.
    #[must_use]
    pub fn new(version: impl Into<String>, machine: Resources) -> ReconcileSettings {
        ReconcileSettings {
            version: version.into(),
            all_workers_resources: machine,
            hung_after: Duration::from_secs(5),
            replace_hung_after: Duration::from_secs(20),
            start_timeout: Duration::from_secs(60),
            drain_grace: Duration::from_secs(300),
            backoff_initial: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            ended_worker_retention: Duration::from_secs(60),
            surge_slots_max: 1,
        }
    }

    /// Returns the settings for a pass that comes `paused` after the previous one. If that is longer than `hung_after`,
    /// this process may have been stopped and have missed heartbeats, so all timeouts for silent workers grow by the
    /// pause.
    #[must_use]
    pub fn after_pause(&self, paused: Duration) -> ReconcileSettings {
        if paused < self.hung_after {
            return self.clone();
        }
        ReconcileSettings {
            hung_after: self.hung_after + paused,
            replace_hung_after: self.replace_hung_after + paused,
            start_timeout: self.start_timeout + paused,
            ..self.clone()
        }
    }
}

/// Action on one worker. An action is repeated until its effect is observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Start {
        cluster: ClusterId,
        slot: u32,
        spec: WorkerSpec,
    },
    /// Apply a new specification.
    Configure {
        worker: WorkerId,
        spec: WorkerSpec,
    },
    /// Give the worker no more statements.
    Drain {
        worker: WorkerId,
    },
    /// Stop the worker, with all statements that run on it.
    Stop {
        worker: WorkerId,
        reason: StopReason,
    },
    /// Give the worker no statements until it answers again.
    MarkHung {
        worker: WorkerId,
    },
    /// Remove an ended worker from the observed ones.
    Forget {
        worker: WorkerId,
    },
}

/// Computes the actions that bring the observed workers closer to the desired state; none if they match it. `now` is on
/// the same clock as the workers' times.
///
/// For each cluster, the slots beyond NODE_COUNT come first, from the highest, then the others from the lowest.
#[must_use]
pub fn reconcile(
    desired: &DesiredState,
    workers: &[Worker],
    now: Duration,
    settings: &ReconcileSettings,
) -> Vec<Action> {
    let mut by_cluster: BTreeMap<ClusterId, BTreeMap<u32, Vec<&Worker>>> = BTreeMap::new();
    for cluster in desired.clusters() {
        by_cluster.insert(cluster.id, BTreeMap::new());
    }
    for worker in workers {
        by_cluster.entry(worker.cluster).or_default().entry(worker.slot).or_default().push(worker);
    }
    let all = desired.awake_workers();
    let mut actions = Vec::new();
    for (id, slots) in by_cluster {
        let (wanted, spec) = desired.cluster(id).map_or((0, None), |cluster| {
            let share = worker_share(settings.all_workers_resources, cluster.spec.node_count, all);
            (cluster.wanted_workers(), Some(cluster.spec.worker_spec(share)))
        });
        for (_, workers) in slots.range(wanted..).rev() {
            SlotReconciler::new(workers, now, settings).remove_workers(&mut actions);
        }
        let Some(spec) = spec else { continue };
        let is_doubled =
            |workers: &[&Worker]| SlotReconciler::new(workers, now, settings).has_old_and_new_worker(&spec);
        let doubled = slots.range(..wanted).filter(|(_, workers)| is_doubled(workers)).count();
        let mut surge = settings.surge_slots_max.saturating_sub(doubled);
        for slot in 0..wanted {
            let workers = slots.get(&slot).map_or(&[][..], Vec::as_slice);
            let is_to_start =
                SlotReconciler::new(workers, now, settings).ensure_worker(&spec, &mut surge, &mut actions);
            if is_to_start {
                actions.push(Action::Start { cluster: id, slot, spec: spec.clone() });
            }
        }
    }
    actions
}
