//! What stands around a cluster's pods: the service that names them, and what keeps drains of nodes from taking all of them at once.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{TASK_PORT, metadata, selector, workers};
use crate::resources::ComputeCluster;

/// What gives each pod a name of its own.
pub(super) fn service(cluster: &ComputeCluster) -> Service {
    Service {
        metadata: metadata(cluster),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector(cluster)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![ServicePort {
                name: Some(workers::TASKS.to_owned()),
                port: TASK_PORT,
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::String(workers::TASKS.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Drains take one worker at a time: it hands over what is hot in its cache, and its queries end or begin again elsewhere.
pub(super) fn disruption_budget(cluster: &ComputeCluster) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(cluster),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector { match_labels: Some(selector(cluster)), ..LabelSelector::default() }),
            // One that has no work may go.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}
