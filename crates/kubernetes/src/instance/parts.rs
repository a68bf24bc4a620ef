//! What stands around an instance's pod: services, its service account, and what keeps drains of nodes off it.

use k8s_openapi::api::core::v1::{Service, ServiceAccount, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{POSTGRES_PORT, main_name, metadata, pod, pods_name, selector};
use crate::resources::{Instance, ServiceType};

/// A service account without any rights, whose token no pod gets.
pub(super) fn service_account(instance: &Instance) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(instance, main_name(instance)),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// Where clients connect.
pub(super) fn service(instance: &Instance) -> Service {
    let kind = match instance.spec.service_type {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    };
    Service {
        metadata: metadata(instance, main_name(instance)),
        spec: Some(ServiceSpec {
            type_: Some(kind.to_owned()),
            selector: Some(selector(instance)),
            ports: Some(vec![port(pod::POSTGRES, POSTGRES_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// What gives the pod a name of its own, and where its metrics are.
pub(super) fn pods_service(instance: &Instance) -> Service {
    Service {
        metadata: metadata(instance, pods_name(instance)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector(instance)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![port(pod::POSTGRES, pod::POSTGRES_PORT), port(pod::HTTP, pod::HTTP_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Drains wait: they would end all sessions.
pub(super) fn disruption_budget(instance: &Instance) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(instance, main_name(instance)),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector { match_labels: Some(selector(instance)), ..LabelSelector::default() }),
            // One that serves nobody may go.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

/// A port of a service, to the pod's port of that name.
fn port(name: &str, port: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(name.to_owned())),
        ..ServicePort::default()
    }
}
