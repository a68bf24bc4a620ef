//! Kiln on Kubernetes: its custom resources, the operator that reconciles them, and the control plane of an instance.
//!
//! This is the only crate that depends on Kubernetes. Pure functions over plain objects compute the desired state; the
//! operator reads the observed state, calls them and writes the differences. It never runs a query.
//!
//! - `resources/mod.rs`: the custom resources that users and GitOps write.
//! - `instance/mod.rs`: the Kubernetes objects and the status of an `Instance`.
//! - `compute/mod.rs`: the Kubernetes objects and the status of a `ComputeCluster`.
//! - `credentials/mod.rs`: the secrets of instances: certificate authority, certificates, superuser passwords.
//! - `object.rs`, `pod.rs`, `quantity.rs`: desired objects, settings common to all pods, and Kubernetes quantities.
//! - `operator/mod.rs`: the reconciliation loops of `kiln operator`.
//! - `plane/mod.rs`: the control plane by which an instance reads and changes its clusters.
//! - `install/mod.rs`: installation in a namespace and its removal.
//! - `connect.rs`: the client of the API server.

pub mod compute;
mod connect;
pub mod credentials;
pub mod install;
pub mod instance;
pub mod object;
pub mod operator;
pub mod plane;
mod pod;
pub mod quantity;
pub mod resources;

pub use connect::{ConnectError, ReadInstanceError, connect, was_restored};
pub use install::{InstallError, InstallProgress, Installation, Removal, install, uninstall};
pub use object::{DesiredObject, to_yaml};
pub use operator::{OperatorError, OperatorSettings, run};
pub use plane::{KubernetesConnection, KubernetesControlPlane, WorkerHosts};
pub use resources::{ComputeCluster, HardwareProfile, Instance};
