//! Pure functions that derive a `ComputeCluster`'s Kubernetes objects, surplus volumes and status.
//!
//! - `stateful_set.rs`: the StatefulSet and its pods.
//! - `support_objects.rs`: the service and the disruption budget.
//! - `surplus_volumes.rs`: cache volumes that are no longer needed.
//! - `status.rs`: the status.
//!
//! Workers drain within the termination of their pods, whatever causes it: fewer nodes, a drained node, a changed
//! template, a dropped cluster. The process gets SIGTERM and tells its instance, which assigns no further work to it;
//! the process ends when nothing runs on it any more, and the grace period of the pod covers that time. Finalizers or a
//! StatefulSet partition would delay only the terminations that the operator itself causes.

mod stateful_set;
mod status;
mod support_objects;
mod surplus_volumes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{ApiResource, ObjectMeta};
use kube::{Resource, ResourceExt};

use crate::desired_object::DesiredObject;
use crate::instance::INSTANCE_LABEL;
use crate::resources::{ComputeCluster, HardwareProfile, Instance};

pub use status::compute_status;
pub use surplus_volumes::surplus_volumes;

/// Label with the name of the ComputeCluster to which an object belongs.
pub const CLUSTER_LABEL: &str = "kiln.dev/cluster";
/// Label with the role of a pod; [`WORKER_COMPONENT`] is its value for workers.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Value of [`COMPONENT_LABEL`] for workers.
pub const WORKER_COMPONENT: &str = "worker";
/// Port on which workers accept tasks.
pub const TASK_PORT: i32 = 8_434;
/// Name of a worker's cache volume, and prefix of its claim's name, which ends with the name of the pod.
pub const CACHE_VOLUME: &str = "cache";

/// Reason why a cluster that the API server has accepted cannot have workers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnmetDependency {
    #[error("there is no instance {name}")]
    MissingInstance { name: String },
    #[error("there is no HardwareProfile {name}")]
    MissingHardwareProfile { name: String },
    /// The instance stores its rows on its own volume, which other pods cannot read.
    #[error(
        "the instance {instance} keeps its rows on its own volume: workers in other pods need a storage that is a bucket"
    )]
    LocalStorage { instance: String },
}

/// Objects on which the workers of a cluster depend.
#[derive(Debug, Clone, Copy)]
pub struct ClusterDependencies<'a> {
    pub instance: &'a Instance,
    pub hardware: &'a HardwareProfile,
    /// StatefulSet of the instance's pod, if it exists.
    pub instance_stateful_set: Option<&'a StatefulSet>,
}

impl<'a> ClusterDependencies<'a> {
    /// Combines the objects that were found for a cluster.
    ///
    /// # Errors
    /// Returns [`UnmetDependency`] if the instance or the hardware profile is missing, or if the rows of the instance
    /// are not in a bucket.
    pub fn new(
        cluster: &ComputeCluster,
        instance: Option<&'a Instance>,
        hardware: Option<&'a HardwareProfile>,
        instance_pods: Option<&'a StatefulSet>,
    ) -> Result<ClusterDependencies<'a>, UnmetDependency> {
        let spec = &cluster.spec;
        let instance = instance.ok_or_else(|| UnmetDependency::MissingInstance { name: spec.instance.clone() })?;
        if instance.spec.storage.url.is_none() {
            return Err(UnmetDependency::LocalStorage { instance: spec.instance.clone() });
        }
        let hardware =
            hardware.ok_or_else(|| UnmetDependency::MissingHardwareProfile { name: spec.hardware_instance.clone() })?;
        Ok(ClusterDependencies { instance, hardware, instance_stateful_set: instance_pods })
    }
}

/// Returns the desired objects of a cluster. `present` is its observed StatefulSet.
#[must_use]
pub fn desired_objects(
    cluster: &ComputeCluster,
    around: &ClusterDependencies<'_>,
    present: Option<&StatefulSet>,
) -> Vec<DesiredObject> {
    vec![
        DesiredObject::new(&support_objects::service(cluster)),
        DesiredObject::new(&support_objects::disruption_budget(cluster)),
        DesiredObject::new(&stateful_set::stateful_set(cluster, around, present)),
    ]
}

/// Returns the kinds of objects that belong to clusters.
#[must_use]
pub fn owned_kinds() -> [ApiResource; 3] {
    [
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<PodDisruptionBudget>(&()),
    ]
}

/// Returns the name of a cluster's StatefulSet, service and disruption budget.
#[must_use]
pub fn stateful_set_name(cluster: &str) -> String {
    format!("{cluster}-workers")
}

/// Returns the slot of a worker pod, which is its ordinal in the StatefulSet, or `None` if the pod is not a worker of
/// the cluster.
#[must_use]
pub fn slot(cluster: &str, pod: &str) -> Option<u32> {
    let ordinal = pod.strip_prefix(stateful_set_name(cluster).as_str())?.strip_prefix('-')?;
    let is_plain = ordinal == "0" || !ordinal.starts_with(['0', '+']);
    is_plain.then(|| ordinal.parse().ok())?
}

/// Returns the audience of worker tokens. It restricts a token to one instance.
#[must_use]
pub fn token_audience(namespace: &str, instance: &str) -> String {
    format!("{instance}.{namespace}.instance.kiln.dev")
}

/// Returns the name of the config map in which an instance publishes the certificate of its authority for its workers.
#[must_use]
pub fn authority_config_map_name(instance: &str) -> String {
    format!("{instance}-authority")
}

/// Key of the certificate in that config map.
pub const AUTHORITY_MAP_KEY: &str = "authority.pem";

/// Returns the labels that select the cluster's pods. The selector of a StatefulSet is immutable, so these never
/// change.
fn selector(cluster: &ComputeCluster) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "kiln".to_owned()),
        (COMPONENT_LABEL.to_owned(), WORKER_COMPONENT.to_owned()),
        (CLUSTER_LABEL.to_owned(), cluster.name_any()),
    ])
}

/// Returns the labels of worker pods: the selector and the name of the instance.
fn pod_labels(cluster: &ComputeCluster) -> BTreeMap<String, String> {
    let mut labels = selector(cluster);
    labels.insert(INSTANCE_LABEL.to_owned(), cluster.spec.instance.clone());
    labels
}

/// Returns the metadata of an object that the cluster owns and that is garbage-collected with it.
fn metadata(cluster: &ComputeCluster) -> ObjectMeta {
    let mut labels = selector(cluster);
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "kiln-operator".to_owned());
    ObjectMeta {
        name: Some(stateful_set_name(&cluster.name_any())),
        namespace: cluster.namespace(),
        labels: Some(labels),
        owner_references: cluster.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// Returns the desired number of workers: 0 while the cluster is suspended.
fn desired_workers(cluster: &ComputeCluster) -> i32 {
    if cluster.spec.suspended { 0 } else { cluster.spec.node_count }
}
