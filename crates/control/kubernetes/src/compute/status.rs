//! Status of a cluster, derived from the observed StatefulSet of its workers.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::Timestamp;

use super::{selector, wanted};
use crate::instance::Outcome;
use crate::resources::{
    ComputeCluster, ComputeClusterPhase, ComputeClusterStatus, READY, RECONCILED, Report, condition,
};

/// Computes the status of a cluster from the observed StatefulSet of its workers.
#[must_use]
pub fn status(
    cluster: &ComputeCluster,
    pods: Option<&StatefulSet>,
    outcome: &Outcome,
    now: Timestamp,
) -> ComputeClusterStatus {
    let before = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let generation = cluster.metadata.generation;
    let Pods { there, ready, is_current } = Pods::of(pods);
    let wanted = wanted(cluster);
    let phase = match (cluster.spec.suspended, there, ready) {
        (true, 0, _) => ComputeClusterPhase::Suspended,
        (true, _, _) => ComputeClusterPhase::Suspending,
        (false, _, 0) => ComputeClusterPhase::Starting,
        (false, _, _) if there == wanted && ready == wanted && is_current => ComputeClusterPhase::Running,
        (false, _, _) => ComputeClusterPhase::Resizing,
    };
    let is_ready = Report {
        holds: phase == ComputeClusterPhase::Running,
        reason: match phase {
            ComputeClusterPhase::Starting => "NoWorkers",
            ComputeClusterPhase::Running => "AllWorkers",
            ComputeClusterPhase::Resizing => "SomeWorkers",
            ComputeClusterPhase::Suspending | ComputeClusterPhase::Suspended => "Suspended",
        },
        message: format!("{ready} of {wanted} workers are ready"),
    };
    let reconciled = match outcome {
        Outcome::Applied => {
            Report { holds: true, reason: "Applied", message: "all objects of the cluster match its spec".to_owned() }
        }
        Outcome::Failed(message) => Report { holds: false, reason: "Failed", message: message.clone() },
    };
    let selector: Vec<String> = selector(cluster).iter().map(|(label, value)| format!("{label}={value}")).collect();
    ComputeClusterStatus {
        observed_generation: generation,
        phase,
        nodes: there,
        ready_nodes: ready,
        selector: Some(selector.join(",")),
        conditions: vec![
            condition(before, READY, is_ready, generation, now),
            condition(before, RECONCILED, reconciled, generation, now),
        ],
    }
}

/// State of a cluster's pods, as their StatefulSet reports it.
struct Pods {
    /// Number of pods that exist.
    there: i32,
    /// Number of pods that are ready.
    ready: i32,
    /// Whether all pods have the newest template.
    is_current: bool,
}

impl Pods {
    fn of(pods: Option<&StatefulSet>) -> Pods {
        let status = pods.and_then(|pods| Some((pods, pods.status.as_ref()?)));
        let Some((pods, status)) = status else { return Pods { there: 0, ready: 0, is_current: true } };
        // A status of an older generation does not describe the current template.
        let is_seen = status.observed_generation == pods.metadata.generation;
        let is_updated = status.current_revision == status.update_revision;
        Pods { there: status.replicas, ready: status.ready_replicas.unwrap_or(0), is_current: is_seen && is_updated }
    }
}
