//! Kiln's custom resources as Rust types, from which their CustomResourceDefinitions are generated.
//!
//! The API server enforces the limits and rules in the definitions, so an accepted object is within them. Golden files
//! under `tests/golden` hold the definitions as they are applied, so that every change of them shows in a review.
//!
//! - `instance.rs`: `Instance`, a warehouse.
//! - `compute_cluster.rs`: `ComputeCluster`, a cluster of workers.
//! - `hardware_profile.rs`: `HardwareProfile`, the hardware of workers.
//! - `status_condition.rs`: conditions in the status of a resource.

mod compute_cluster;
mod hardware_profile;
mod instance;
mod status_condition;

#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use compute_cluster::{ComputeCluster, ComputeClusterPhase, ComputeClusterSpec, ComputeClusterStatus};
pub use hardware_profile::{CacheVolume, HardwareProfile, HardwareProfileSpec};
pub use instance::{
    Auth, Instance, InstancePhase, InstanceSpec, InstanceStatus, Resources, Restore, ServiceType, Setting, Storage,
    Tls, Volume, VolumeRetention,
};
pub use status_condition::{ConditionState, RECONCILED, updated_condition};

/// Condition type: whether the resource is in service.
pub const READY: &str = "Ready";

/// Returns the CustomResourceDefinitions of all Kiln resources.
#[must_use]
pub fn custom_resource_definitions() -> [CustomResourceDefinition; 3] {
    [Instance::crd(), ComputeCluster::crd(), HardwareProfile::crd()]
}
