//! Objects beside a cluster's pods: the headless service and the disruption budget.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{TASK_PORT, metadata, selector, stateful_set};
use crate::resources::ComputeCluster;

/// Returns the headless service that gives each pod a DNS name.
pub(super) fn service(cluster: &ComputeCluster) -> Service {
    Service {
        metadata: metadata(cluster),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector(cluster)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![ServicePort {
                name: Some(stateful_set::TASK_PORT_NAME.to_owned()),
                port: TASK_PORT,
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::String(stateful_set::TASK_PORT_NAME.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Returns the disruption budget that lets node drains evict one worker at a time. A worker that is evicted hands over
/// the hot part of its cache, and its queries finish or are retried elsewhere.
pub(super) fn disruption_budget(cluster: &ComputeCluster) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(cluster),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector { match_labels: Some(selector(cluster)), ..LabelSelector::default() }),
            // A worker that is not ready has no work and may be evicted.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}
