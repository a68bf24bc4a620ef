//! What a `ComputeCluster` becomes: the objects that it should consist of, what is to be done next, and what its status says. All pure.
//!
//! `workers.rs` is the pods, `parts.rs` what stands around them, `volumes.rs` which of their volumes nobody will want again, `status.rs` how the cluster is.
//!
//! A worker goes as Kubernetes lets pods go, whoever wants that: fewer nodes, a drained node, another template, a dropped cluster. Its process is told by a
//! signal, tells its instance, gets nothing more to do and ends when nothing runs on it any more; until then, and for as long as that may take, the pod is
//! there. A finalizer or a partition would make only those wait that the operator itself takes away.

mod parts;
mod status;
mod volumes;
mod workers;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{ApiResource, ObjectMeta};
use kube::{Resource, ResourceExt};

use crate::instance::INSTANCE_LABEL;
use crate::object::Object;
use crate::resources::{ComputeCluster, HardwareProfile, Instance};

pub use status::status;
pub use volumes::surplus_volumes;

/// The label that names the cluster of an object.
pub const CLUSTER_LABEL: &str = "kiln.dev/cluster";
/// The label and its value that tell workers from everything else.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// See [`COMPONENT_LABEL`].
pub const WORKER: &str = "worker";
/// Where workers take tasks.
pub const TASK_PORT: i32 = 8_434;
/// The volume of a worker, as its claim is called before the pod's name.
pub const CACHE_VOLUME: &str = "cache";

/// Why a cluster cannot have workers, although the API server has accepted it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    #[error("there is no instance {name}")]
    NoInstance { name: String },
    #[error("there is no HardwareProfile {name}")]
    NoHardware { name: String },
    /// Other pods cannot read its volume.
    #[error(
        "the instance {instance} keeps its rows on its own volume: workers in other pods need a storage that is a bucket"
    )]
    OwnStorage { instance: String },
}

/// What a cluster is made by.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    pub instance: &'a Instance,
    pub hardware: &'a HardwareProfile,
    /// The StatefulSet of the instance's pod, where that has been made.
    pub instance_pods: Option<&'a StatefulSet>,
}

impl<'a> Around<'a> {
    /// Of what there is.
    ///
    /// # Errors
    /// [`Impossible`].
    pub fn new(
        cluster: &ComputeCluster,
        instance: Option<&'a Instance>,
        hardware: Option<&'a HardwareProfile>,
        instance_pods: Option<&'a StatefulSet>,
    ) -> Result<Around<'a>, Impossible> {
        let spec = &cluster.spec;
        let instance = instance.ok_or_else(|| Impossible::NoInstance { name: spec.instance.clone() })?;
        if instance.spec.storage.url.is_none() {
            return Err(Impossible::OwnStorage { instance: spec.instance.clone() });
        }
        let hardware = hardware.ok_or_else(|| Impossible::NoHardware { name: spec.hardware_instance.clone() })?;
        Ok(Around { instance, hardware, instance_pods })
    }
}

/// All objects of a cluster, as they should be. `present` is its StatefulSet as it is.
#[must_use]
pub fn objects(cluster: &ComputeCluster, around: &Around<'_>, present: Option<&StatefulSet>) -> Vec<Object> {
    vec![
        Object::new(&parts::service(cluster)),
        Object::new(&parts::disruption_budget(cluster)),
        Object::new(&workers::stateful_set(cluster, around, present)),
    ]
}

/// The kinds of objects that clusters consist of.
#[must_use]
pub fn kinds() -> [ApiResource; 3] {
    [
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<PodDisruptionBudget>(&()),
    ]
}

/// The name of a cluster's StatefulSet and of all else that is made for it.
#[must_use]
pub fn workers_name(cluster: &str) -> String {
    format!("{cluster}-workers")
}

/// Which slot a pod of the cluster has; `None` where it is none of its workers.
#[must_use]
pub fn slot(cluster: &str, pod: &str) -> Option<u32> {
    let ordinal = pod.strip_prefix(workers_name(cluster).as_str())?.strip_prefix('-')?;
    let is_plain = ordinal == "0" || !ordinal.starts_with(['0', '+']);
    is_plain.then(|| ordinal.parse().ok())?
}

/// Who a token has to be for, so that a worker can show it to the instance and to nobody else.
#[must_use]
pub fn audience(namespace: &str, instance: &str) -> String {
    format!("{instance}.{namespace}.instance.kiln.dev")
}

/// The config map in which an instance says by which certificate its workers know it.
#[must_use]
pub fn authority_name(instance: &str) -> String {
    format!("{instance}-authority")
}

/// What there is in it.
pub const AUTHORITY_KEY: &str = "authority.pem";

/// What tells the cluster's pods from others; never changed, as it cannot be in a StatefulSet.
fn selector(cluster: &ComputeCluster) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "kiln".to_owned()),
        (COMPONENT_LABEL.to_owned(), WORKER.to_owned()),
        (CLUSTER_LABEL.to_owned(), cluster.name_any()),
    ])
}

/// Those, and whose workers they are.
fn pod_labels(cluster: &ComputeCluster) -> BTreeMap<String, String> {
    let mut labels = selector(cluster);
    labels.insert(INSTANCE_LABEL.to_owned(), cluster.spec.instance.clone());
    labels
}

/// Of an object that is the cluster's, and goes when it goes.
fn metadata(cluster: &ComputeCluster) -> ObjectMeta {
    let mut labels = selector(cluster);
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "kiln-operator".to_owned());
    ObjectMeta {
        name: Some(workers_name(&cluster.name_any())),
        namespace: cluster.namespace(),
        labels: Some(labels),
        owner_references: cluster.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// How many workers there should be now.
fn wanted(cluster: &ComputeCluster) -> i32 {
    if cluster.spec.suspended { 0 } else { cluster.spec.node_count }
}
