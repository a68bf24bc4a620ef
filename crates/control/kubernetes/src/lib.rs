//! Kiln on Kubernetes: its custom resources, the operator that reconciles them, and the control plane of an instance.
//!
//! This is the only crate that depends on Kubernetes. Pure functions over plain objects compute the desired state; the
//! operator reads the observed state, calls them and writes the differences. It never runs a query.
//!
//! - `resources/mod.rs`: the custom resources that users and GitOps write.
//! - `instance/mod.rs`: the Kubernetes objects and the status of an `Instance`.
//! - `compute_cluster/mod.rs`: the Kubernetes objects and the status of a `ComputeCluster`.
//! - `credentials/mod.rs`: the secrets of instances: certificate authority, certificates, superuser passwords.
//! - `desired_object.rs`, `pod_parts.rs`, `quantity.rs`: desired objects, settings common to all pods, and Kubernetes
//!   quantities.
//! - `operator/mod.rs`: the reconciliation loops of `kiln operator`.
//! - `plane/mod.rs`: the control plane by which an instance reads and changes its clusters.
//! - `install/mod.rs`: installation in a namespace and its removal.
//! - `connect_api_server.rs`: the client of the API server.

pub mod compute_cluster;
mod connect_api_server;
pub mod credentials;
pub mod desired_object;
pub mod install;
pub mod instance;
pub mod operator;
pub mod plane;
mod pod_parts;
pub mod quantity;
pub mod resources;

pub use connect_api_server::{ConnectError, ReadInstanceError, connect, was_restored};
pub use desired_object::{DesiredObject, to_yaml};
pub use install::{InstallError, InstallProgress, Installation, Removal, install, uninstall};
pub use operator::{OperatorError, OperatorSettings, run};
pub use plane::{KubernetesConnection, KubernetesControlPlane, WorkerHosts};
pub use resources::{ComputeCluster, HardwareProfile, Instance};
