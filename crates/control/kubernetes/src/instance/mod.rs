//! Pure functions that derive an `Instance`'s Kubernetes objects, its next reconciliation step and its status.
//!
//! - `stateful_set.rs`: the StatefulSet and its pod.
//! - `support_objects.rs`: services, service account, role binding and disruption budget.
//! - `reconcile_step.rs`: the next step in the life of an instance.
//! - `status.rs`: the status.

mod reconcile_step;
mod stateful_set;
mod status;
mod support_objects;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::{ApiResource, ObjectMeta};
use kube::{Resource, ResourceExt};

use crate::desired_object::DesiredObject;
use crate::resources::Instance;

pub use reconcile_step::{FINALIZER, InstanceStep, next_step};
pub use status::{ReconcileOutcome, compute_status};

/// Label with the name of the instance to which an object belongs.
pub const INSTANCE_LABEL: &str = "kiln.dev/instance";
/// Port of the service to which clients in the Kubernetes cluster connect.
pub const SERVICE_POSTGRES_PORT: i32 = 5_432;
/// Port on which an instance accepts its workers.
pub const WORKER_JOIN_PORT: i32 = 5_434;
/// Name of the role with the permissions of instance pods, which an installation creates.
pub const INSTANCE_ROLE: &str = "kiln-instance";

/// Defect of an Instance that the API server's validation does not detect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInstance {
    #[error("{field} {value:?} is not a valid Kubernetes quantity")]
    Quantity { field: &'static str, value: String },
}

/// Returns the desired objects of an instance, except for its secrets.
///
/// # Errors
/// Returns [`InvalidInstance`] if the CPU or memory quantity cannot be used.
pub fn desired_objects(instance: &Instance) -> Result<Vec<DesiredObject>, InvalidInstance> {
    let mut objects = Vec::new();
    if instance.spec.service_account_name.is_none() {
        objects.push(DesiredObject::new(&support_objects::service_account(instance)));
    }
    objects.push(DesiredObject::new(&support_objects::role_binding(instance)));
    objects.push(DesiredObject::new(&support_objects::service(instance)));
    objects.push(DesiredObject::new(&support_objects::headless_service(instance)));
    if !instance.spec.evictable {
        objects.push(DesiredObject::new(&support_objects::disruption_budget(instance)));
    }
    objects.push(DesiredObject::new(&stateful_set::stateful_set(instance)?));
    Ok(objects)
}

/// Returns the kinds of objects that belong to instances.
#[must_use]
pub fn owned_kinds() -> [ApiResource; 6] {
    [
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<PodDisruptionBudget>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Secret>(&()),
    ]
}

/// Returns the labels that select the instance's pod. The selector of a StatefulSet is immutable, so these never
/// change.
fn selector(instance: &Instance) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "kiln".to_owned()),
        ("app.kubernetes.io/component".to_owned(), "instance".to_owned()),
        (INSTANCE_LABEL.to_owned(), instance.name_any()),
    ])
}

/// Returns the metadata of an object that the instance owns and that is garbage-collected with it.
pub(crate) fn metadata(instance: &Instance, name: String) -> ObjectMeta {
    let mut labels = selector(instance);
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "kiln-operator".to_owned());
    ObjectMeta {
        name: Some(name),
        namespace: instance.namespace(),
        labels: Some(labels),
        owner_references: instance.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// Returns the name of the StatefulSet, the service for clients, the service account and the role binding.
pub(crate) fn shared_object_name(instance: &Instance) -> String {
    instance.name_any()
}

/// Returns the name of the headless service that gives the pod its DNS name.
pub(crate) fn headless_service_name(instance: &Instance) -> String {
    format!("{}-pods", instance.name_any())
}

/// Returns the name of the service account of the pod and of its workers.
pub(crate) fn service_account_name(instance: &Instance) -> String {
    instance.spec.service_account_name.clone().unwrap_or_else(|| shared_object_name(instance))
}

/// Returns the address, as `host:port`, at which workers in other pods join the instance.
pub(crate) fn worker_join_address(instance: &Instance) -> String {
    let namespace = instance.namespace().unwrap_or_default();
    format!("{}-0.{}.{namespace}.svc:{WORKER_JOIN_PORT}", shared_object_name(instance), headless_service_name(instance))
}
