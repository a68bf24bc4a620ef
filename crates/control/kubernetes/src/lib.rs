//! Kiln in Kubernetes: resources of its own, what they are made into, and the operator that makes it.
//!
//! The only crate that knows Kubernetes. What should be is decided by pure functions over plain objects; the operator reads, asks them and
//! writes, and never runs a query.
//!
//! Start at `resources/mod.rs` for what a person or GitOps writes, `instance/mod.rs` and `compute/mod.rs` for what becomes of it, `credentials/mod.rs` for what proves who is who, `operator/mod.rs` for the loop,
//! `plane/mod.rs` for what an instance asks and changes of its clusters, `install/mod.rs` for what an administrator does to have all this.

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

pub use connect::{ConnectError, LookError, connect, was_restored};
pub use install::{Install, InstallError, Progress, Remove, install, uninstall};
pub use object::{Object, yaml};
pub use operator::{OperatorError, OperatorSettings, run};
pub use plane::{Hosts, KubernetesControlPlane, Warehouse};
pub use resources::{ComputeCluster, HardwareProfile, Instance};
