//! Status of an instance, derived from the observed StatefulSet of its pod.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{SERVICE_POSTGRES_PORT, shared_object_name};
use crate::resources::{ConditionState, Instance, InstancePhase, InstanceStatus, READY, RECONCILED, updated_condition};

/// Outcome of the last reconciliation of an instance or a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// All its objects are applied.
    Applied,
    /// Some objects could not be applied, for this reason.
    NotApplied(String),
}

/// Computes the status of an instance from the observed StatefulSet of its pod.
#[must_use]
pub fn compute_status(
    instance: &Instance,
    pods: Option<&StatefulSet>,
    outcome: &ReconcileOutcome,
    now: Timestamp,
) -> InstanceStatus {
    let before = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let generation = instance.metadata.generation;
    let pod = PodState::from_stateful_set(pods);
    let is_going = instance.metadata.deletion_timestamp.is_some();
    let phase = match (is_going, pod.is_current, pod.is_ready) {
        (true, _, _) => InstancePhase::Stopping,
        (false, true, true) => InstancePhase::Running,
        (false, false, _) => InstancePhase::Upgrading,
        (false, true, false) => InstancePhase::Starting,
    };
    let ready = match phase {
        InstancePhase::Stopping => {
            ConditionState { is_true: false, reason: "Deleted", message: "the instance is being deleted".to_owned() }
        }
        _ if pod.is_ready => {
            ConditionState { is_true: true, reason: "PodReady", message: "the pod accepts queries".to_owned() }
        }
        _ => ConditionState {
            is_true: false,
            reason: "PodNotReady",
            message: "the pod does not accept queries".to_owned(),
        },
    };
    let reconciled = match outcome {
        ReconcileOutcome::Applied => ConditionState {
            is_true: true,
            reason: "Applied",
            message: "all objects of the instance match its spec".to_owned(),
        },
        ReconcileOutcome::NotApplied(message) => {
            ConditionState { is_true: false, reason: "Failed", message: message.clone() }
        }
    };
    let namespace = instance.namespace().unwrap_or_default();
    InstanceStatus {
        observed_generation: generation,
        phase,
        restored: instance.spec.restore.is_some()
            && (pod.is_ready || instance.status.as_ref().is_some_and(|before| before.restored)),
        endpoint: Some(format!("{}.{namespace}.svc:{SERVICE_POSTGRES_PORT}", shared_object_name(instance))),
        conditions: vec![
            updated_condition(before, READY, ready, generation, now),
            updated_condition(before, RECONCILED, reconciled, generation, now),
        ],
    }
}

/// State of an instance's pod, as its StatefulSet reports it.
struct PodState {
    is_ready: bool,
    /// Whether the pod has the newest template or is starting for the first time.
    is_current: bool,
}

impl PodState {
    fn from_stateful_set(pods: Option<&StatefulSet>) -> PodState {
        let Some(pods) = pods else { return PodState { is_ready: false, is_current: true } };
        let Some(status) = &pods.status else { return PodState { is_ready: false, is_current: true } };
        // A status of an older generation does not describe the current template.
        let is_seen = status.observed_generation == pods.metadata.generation;
        let is_updated = status.current_revision == status.update_revision;
        PodState { is_ready: status.ready_replicas.is_some_and(|ready| 0 < ready), is_current: is_seen && is_updated }
    }
}
