//! Objects beside an instance's pod: services, service account, role binding and disruption budget.

use k8s_openapi::api::core::v1::{Service, ServiceAccount, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::{
    INSTANCE_ROLE, SERVICE_POSTGRES_PORT, WORKER_JOIN_PORT, headless_service_name, metadata, selector,
    service_account_name, shared_object_name, stateful_set,
};
use crate::resources::{Instance, ServiceType};

/// Returns the service account, whose token is mounted only into pods that request it.
pub(super) fn service_account(instance: &Instance) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(instance, shared_object_name(instance)),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// Returns the role binding that lets the pod manage clusters and their worker pods, and nothing else.
pub(super) fn role_binding(instance: &Instance) -> RoleBinding {
    RoleBinding {
        metadata: metadata(instance, shared_object_name(instance)),
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: INSTANCE_ROLE.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: service_account_name(instance),
            namespace: instance.namespace(),
            ..Subject::default()
        }]),
    }
}

/// Returns the service to which clients connect.
pub(super) fn service(instance: &Instance) -> Service {
    let kind = match instance.spec.service_type {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    };
    Service {
        metadata: metadata(instance, shared_object_name(instance)),
        spec: Some(ServiceSpec {
            type_: Some(kind.to_owned()),
            selector: Some(selector(instance)),
            ports: Some(vec![service_port(stateful_set::POSTGRES_PORT_NAME, SERVICE_POSTGRES_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Returns the headless service, which gives the pod its DNS name and exposes its metrics and the port for workers.
pub(super) fn headless_service(instance: &Instance) -> Service {
    Service {
        metadata: metadata(instance, headless_service_name(instance)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector(instance)),
            publish_not_ready_addresses: Some(true),
            ports: Some(vec![
                service_port(stateful_set::POSTGRES_PORT_NAME, stateful_set::POD_POSTGRES_PORT),
                service_port(stateful_set::HTTP_PORT_NAME, stateful_set::HTTP_PORT),
                service_port(stateful_set::WORKERS_PORT_NAME, WORKER_JOIN_PORT),
            ]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Returns the disruption budget that blocks node drains while the pod serves, because its eviction ends all sessions.
pub(super) fn disruption_budget(instance: &Instance) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(instance, shared_object_name(instance)),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector { match_labels: Some(selector(instance)), ..LabelSelector::default() }),
            // A pod that is not ready serves nobody and may be evicted.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

/// Returns a service port that forwards to the pod's port of the same name.
fn service_port(name: &str, port: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(name.to_owned())),
        ..ServicePort::default()
    }
}
