//! Workers in pods: combines observed pods with the workers that have joined from them, and decides the actions. Pure.
//!
//! Kubernetes starts and stops pods. The instance contributes what only it knows: that a draining worker has nothing
//! left to do, and that a worker no longer responds.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use cluster_model::{ClusterId, ReconcileSettings, StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use types::Clock;
use xxhash_rust::xxh3::xxh3_64;

use super::cluster_conversion::cluster_label;
use crate::compute_cluster::slot;

/// Properties of a worker's pod that concern the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerPod {
    pub(super) name: String,
    pub(super) uid: String,
    /// Name of the ComputeCluster.
    pub(super) cluster: String,
    pub(super) slot: u32,
    /// Whether it is being deleted.
    pub(super) is_deleting: bool,
    /// Whether it has ended and is not restarted.
    pub(super) has_ended: bool,
    /// Reason why it does not run, if Kubernetes reports one.
    pub(super) reason: Option<String>,
    /// Time of its creation on the monotonic clock.
    pub(super) since: Duration,
}

impl WorkerPod {
    /// Reads the properties from a pod. Returns `None` if the pod is not a worker.
    pub(super) fn from_pod(pod: &Pod, clock: &dyn Clock) -> Option<WorkerPod> {
        let name = pod.name_any();
        let made = pod.metadata.creation_timestamp.as_ref().map(|made| made.0.as_microsecond());
        let age = clock.now_us().saturating_sub(made.unwrap_or_else(|| clock.now_us()));
        let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
        let cluster = cluster_label(pod.labels())?.clone();
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        Some(WorkerPod {
            slot: slot(&cluster, &name)?,
            uid: pod.uid()?,
            is_deleting: pod.metadata.deletion_timestamp.is_some(),
            has_ended: matches!(phase, Some("Failed" | "Succeeded")),
            reason: not_running_reason(pod),
            since: clock.monotonic().saturating_sub(age),
            name,
            cluster,
        })
    }
}

/// Returns the reason and message that Kubernetes reports for a pod that does not run.
fn not_running_reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let said = |reason: Option<&String>, message: Option<&String>| match (reason, message) {
        (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        (one, other) => one.or(other).cloned(),
    };
    let container = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        said(waiting.reason.as_ref(), waiting.message.as_ref())
    });
    let condition = || {
        let unscheduled = |kind: &str, status: &str| kind == "PodScheduled" && status == "False";
        let conditions = status.conditions.iter().flatten();
        let found = conditions.into_iter().find(|condition| unscheduled(&condition.type_, &condition.status))?;
        said(found.reason.as_ref(), found.message.as_ref())
    };
    said(status.reason.as_ref(), status.message.as_ref()).or(container).or_else(condition)
}

/// Worker that has joined, with the pod that it runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JoinedWorker {
    pub(super) worker: Worker,
    /// Uid of the pod.
    pub(super) pod_uid: Option<String>,
}

/// Desired workers of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DesiredWorkers {
    pub(super) id: ClusterId,
    pub(super) spec: WorkerSpec,
    /// Number of slots while the cluster is not suspended.
    pub(super) slots: u32,
}

/// Action on a worker or its pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkerAction {
    Configure {
        worker: WorkerId,
        spec: WorkerSpec,
    },
    Drain {
        worker: WorkerId,
    },
    Stop {
        worker: WorkerId,
        reason: StopReason,
    },
    MarkHung {
        worker: WorkerId,
    },
    /// The worker's pod is gone or has ended.
    MarkLost {
        worker: WorkerId,
        detail: String,
    },
    Forget {
        worker: WorkerId,
    },
    /// Delete the pod, so that Kubernetes creates another one.
    DeletePod {
        name: String,
        uid: String,
    },
}

/// Observed workers, and the actions that they need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PodObservation {
    pub(super) workers: Vec<Worker>,
    pub(super) actions: Vec<WorkerAction>,
}

/// Combines pods and workers. A worker is lost when its pod is missing, provided that `pods` are complete (`are_all`).
/// A pod from which no worker has joined yet is listed as an expected worker.
pub(super) fn observe(
    pods: &[impl AsRef<WorkerPod>],
    pods_are_complete: bool,
    joined: Vec<JoinedWorker>,
    plans: &HashMap<String, DesiredWorkers>,
    now: Duration,
    settings: &ReconcileSettings,
) -> PodObservation {
    let by_uid: HashMap<&str, &WorkerPod> = pods.iter().map(|pod| (pod.as_ref().uid.as_str(), pod.as_ref())).collect();
    let by_id: HashMap<ClusterId, &DesiredWorkers> = plans.values().map(|plan| (plan.id, plan)).collect();
    let (mut live_pod_uids, mut joined_pod_uids): (HashSet<String>, HashSet<String>) = Default::default();
    let mut look = PodObservation::default();
    for JoinedWorker { worker, pod_uid: life } in joined {
        let pod = life.as_deref().and_then(|life| by_uid.get(life).copied());
        if worker.state != WorkerState::Gone {
            live_pod_uids.extend(life.clone());
        }
        joined_pod_uids.extend(life);
        let wanted = by_id.get(&worker.cluster).map(|plan| &plan.spec);
        decide_action(&worker, pod, pods_are_complete, wanted, now, settings, &mut look.actions);
        look.workers.push(worker);
    }
    let is_told =
        |pod: &WorkerPod| live_pod_uids.contains(&pod.uid) || (pod.has_ended && joined_pod_uids.contains(&pod.uid));
    for pod in pods.iter().map(AsRef::as_ref).filter(|pod| !is_told(pod)) {
        // No workers are expected for a dropped cluster.
        if let Some(plan) = plans.get(&pod.cluster) {
            look.workers.push(expected_worker(pod, plan));
        }
    }
    look
}

/// Adds the action that a worker needs, if any, to `deeds`.
fn decide_action(
    worker: &Worker,
    pod: Option<&WorkerPod>,
    are_all: bool,
    wanted: Option<&WorkerSpec>,
    now: Duration,
    settings: &ReconcileSettings,
    deeds: &mut Vec<WorkerAction>,
) {
    let id = worker.id;
    let age = now.saturating_sub(worker.state_since);
    if worker.state == WorkerState::Gone {
        if settings.ended_worker_retention <= age {
            deeds.push(WorkerAction::Forget { worker: id });
        }
        return;
    }
    match pod {
        None if are_all => {
            return deeds.push(WorkerAction::MarkLost { worker: id, detail: "its pod is gone".to_owned() });
        }
        Some(pod) if pod.has_ended => {
            let why = pod.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            return deeds.push(WorkerAction::MarkLost { worker: id, detail: format!("its pod has ended{why}") });
        }
        _ => {}
    }
    let silent = now.saturating_sub(worker.last_heartbeat);
    if settings.hung_after <= silent && !worker.hung {
        deeds.push(WorkerAction::MarkHung { worker: id });
    }
    let is_draining = worker.state == WorkerState::Draining;
    let is_going = pod.is_some_and(|pod| pod.is_deleting);
    if settings.replace_hung_after <= silent {
        // Kubernetes kills a pod that is being deleted when its grace period ends.
        if let Some(pod) = pod.filter(|pod| !pod.is_deleting) {
            deeds.push(WorkerAction::DeletePod { name: pod.name.clone(), uid: pod.uid.clone() });
        }
    } else if is_draining && worker.running == 0 && !worker.is_handing_over {
        deeds.push(WorkerAction::Stop { worker: id, reason: StopReason::Drained });
    } else if is_draining && settings.drain_grace <= age {
        deeds.push(WorkerAction::Stop { worker: id, reason: StopReason::GracePeriodExceeded });
    } else if is_going && !is_draining {
        deeds.push(WorkerAction::Drain { worker: id });
    } else if let Some(spec) = wanted.filter(|spec| **spec != worker.spec && !is_draining) {
        deeds.push(WorkerAction::Configure { worker: id, spec: spec.clone() });
    }
}

/// Returns the worker that is expected to join from a pod. Its id is provisional and changes when the worker joins;
/// until then nothing connects to it.
fn expected_worker(pod: &WorkerPod, plan: &DesiredWorkers) -> Worker {
    Worker {
        id: WorkerId(xxh3_64(pod.uid.as_bytes())),
        cluster: plan.id,
        slot: pod.slot,
        spec: plan.spec.clone(),
        state: match (pod.has_ended, pod.is_deleting) {
            (true, _) => WorkerState::Gone,
            (false, true) => WorkerState::Draining,
            (false, false) => WorkerState::Starting,
        },
        state_since: pod.since,
        last_heartbeat: pod.since,
        hung: false,
        failed: pod.has_ended,
        is_handing_over: false,
        version: None,
        address: None,
        running: 0,
        cache_bytes: 0,
        detail: pod.reason.clone(),
    }
}

#[cfg(test)]
mod tests;
