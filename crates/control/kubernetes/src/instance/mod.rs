//! What an `Instance` becomes: the objects that it should consist of, what is to be done next, and what its status says. All pure.
//!
//! `pod.rs` is the pod, `parts.rs` what stands around it, `step.rs` what comes next in its life, `status.rs` how it is.

mod parts;
mod pod;
mod status;
mod step;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::{ApiResource, ObjectMeta};
use kube::{Resource, ResourceExt};

use crate::object::Object;
use crate::resources::Instance;

pub use status::{Outcome, status};
pub use step::{FINALIZER, Step, step};

/// The label that names the instance of an object.
pub const INSTANCE_LABEL: &str = "kiln.dev/instance";
/// Where clients in the cluster connect.
pub const POSTGRES_PORT: i32 = 5_432;
/// Where workers come in.
pub const DOOR_PORT: i32 = 5_434;
/// What pods of instances may do, as an installation says it.
pub const INSTANCE_ROLE: &str = "kiln-instance";

/// Why an instance cannot be made, although the API server has accepted it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{field} {value:?} is no amount")]
    Quantity { field: &'static str, value: String },
}

/// All objects of an instance but its secrets, as they should be.
///
/// # Errors
/// [`Invalid`].
pub fn objects(instance: &Instance) -> Result<Vec<Object>, Invalid> {
    let mut objects = Vec::new();
    if instance.spec.service_account_name.is_none() {
        objects.push(Object::new(&parts::service_account(instance)));
    }
    objects.push(Object::new(&parts::role_binding(instance)));
    objects.push(Object::new(&parts::service(instance)));
    objects.push(Object::new(&parts::pods_service(instance)));
    if !instance.spec.evictable {
        objects.push(Object::new(&parts::disruption_budget(instance)));
    }
    objects.push(Object::new(&pod::stateful_set(instance)?));
    Ok(objects)
}

/// The kinds of objects that instances consist of.
#[must_use]
pub fn kinds() -> [ApiResource; 6] {
    [
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<PodDisruptionBudget>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Secret>(&()),
    ]
}

/// What tells the instance's pod from others; never changed, as it cannot be in a StatefulSet.
fn selector(instance: &Instance) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "kiln".to_owned()),
        ("app.kubernetes.io/component".to_owned(), "instance".to_owned()),
        (INSTANCE_LABEL.to_owned(), instance.name_any()),
    ])
}

/// Of an object that is the instance's, and goes when it goes.
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

/// The name of the StatefulSet, of the service for clients and of the service account.
pub(crate) fn main_name(instance: &Instance) -> String {
    instance.name_any()
}

/// The name of the service that gives the pod its name.
pub(crate) fn pods_name(instance: &Instance) -> String {
    format!("{}-pods", instance.name_any())
}

/// The service account of the pod and of its workers.
pub(crate) fn account_name(instance: &Instance) -> String {
    instance.spec.service_account_name.clone().unwrap_or_else(|| main_name(instance))
}

/// Where workers come in, as those in other pods find it.
pub(crate) fn door(instance: &Instance) -> String {
    let namespace = instance.namespace().unwrap_or_default();
    format!("{}-0.{}.{namespace}.svc:{DOOR_PORT}", main_name(instance), pods_name(instance))
}
