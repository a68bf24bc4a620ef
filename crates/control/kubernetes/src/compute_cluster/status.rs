//! Status of a cluster, derived from the observed StatefulSet of its workers.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::Timestamp;

use super::{desired_workers, selector};
use crate::instance::ReconcileOutcome;
use crate::resources::{
    ComputeCluster, ComputeClusterPhase, ComputeClusterStatus, ConditionState, READY, RECONCILED, updated_condition,
};

/// Computes the status of a cluster from the observed StatefulSet of its workers.
#[must_use]
pub fn compute_status(
    cluster: &ComputeCluster,
    pods: Option<&StatefulSet>,
    outcome: &ReconcileOutcome,
    now: Timestamp,
) -> ComputeClusterStatus {
    let before = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let generation = cluster.metadata.generation;
    let WorkerPodsState { existing: there, ready, is_current } = WorkerPodsState::from_stateful_set(pods);
    let wanted = desired_workers(cluster);
    let phase = match (cluster.spec.suspended, there, ready) {
        (true, 0, _) => ComputeClusterPhase::Suspended,
        (true, _, _) => ComputeClusterPhase::Suspending,
        (false, _, 0) => ComputeClusterPhase::Starting,
        (false, _, _) if there == wanted && ready == wanted && is_current => ComputeClusterPhase::Running,
        (false, _, _) => ComputeClusterPhase::Resizing,
    };
    let is_ready = ConditionState {
        is_true: phase == ComputeClusterPhase::Running,
        reason: match phase {
            ComputeClusterPhase::Starting => "NoWorkers",
            ComputeClusterPhase::Running => "AllWorkers",
            ComputeClusterPhase::Resizing => "SomeWorkers",
            ComputeClusterPhase::Suspending | ComputeClusterPhase::Suspended => "Suspended",
        },
        message: format!("{ready} of {wanted} workers are ready"),
    };
    let reconciled = match outcome {
        ReconcileOutcome::Applied => ConditionState {
            is_true: true,
            reason: "Applied",
            message: "all objects of the cluster match its spec".to_owned(),
        },
        ReconcileOutcome::NotApplied(message) => {
            ConditionState { is_true: false, reason: "Failed", message: message.clone() }
        }
    };
    let selector: Vec<String> = selector(cluster).iter().map(|(label, value)| format!("{label}={value}")).collect();
    ComputeClusterStatus {
        observed_generation: generation,
        phase,
        nodes: there,
        ready_nodes: ready,
        selector: Some(selector.join(",")),
        conditions: vec![
            updated_condition(before, READY, is_ready, generation, now),
            updated_condition(before, RECONCILED, reconciled, generation, now),
        ],
    }
}

/// State of a cluster's pods, as their StatefulSet reports it.
struct WorkerPodsState {
    /// Number of pods that exist.
    existing: i32,
    /// Number of pods that are ready.
    ready: i32,
    /// Whether all pods have the newest template.
    is_current: bool,
}

impl WorkerPodsState {
    fn from_stateful_set(pods: Option<&StatefulSet>) -> WorkerPodsState {
        let status = pods.and_then(|pods| Some((pods, pods.status.as_ref()?)));
        let Some((pods, status)) = status else { return WorkerPodsState { existing: 0, ready: 0, is_current: true } };
        // A status of an older generation does not describe the current template.
        let is_seen = status.observed_generation == pods.metadata.generation;
        let is_updated = status.current_revision == status.update_revision;
        WorkerPodsState {
            existing: status.replicas,
            ready: status.ready_replicas.unwrap_or(0),
            is_current: is_seen && is_updated,
        }
    }
}
