//! Kiln's own resources in Kubernetes, as Rust types: their definitions, with the rules that the API server checks, are made of these.
//!
//! The API server keeps the limits: what has been accepted is within them. Golden files under `tests/golden` hold the definitions as they are
//! applied, so that no change of them goes unseen.

mod compute_cluster;
mod condition;
mod hardware_profile;
mod instance;

#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use compute_cluster::{ComputeCluster, ComputeClusterPhase, ComputeClusterSpec, ComputeClusterStatus};
pub use condition::{RECONCILED, Report, condition};
pub use hardware_profile::{CacheVolume, HardwareProfile, HardwareProfileSpec};
pub use instance::{
    Auth, Instance, InstancePhase, InstanceSpec, InstanceStatus, Resources, Restore, ServiceType, Setting, Storage,
    Tls, Volume, VolumeRetention,
};

/// The condition that says whether a resource does what it is for.
pub const READY: &str = "Ready";

/// All definitions.
#[must_use]
pub fn definitions() -> [CustomResourceDefinition; 3] {
    [Instance::crd(), ComputeCluster::crd(), HardwareProfile::crd()]
}
