//! Kiln in Kubernetes: resources of its own, what they are made into, and the operator that makes it.
//!
//! The only crate that knows Kubernetes. What should be is decided by pure functions over plain objects; the operator reads, asks them and
//! writes, and never runs a query.
//!
//! Start at `resources/mod.rs` for what a person or GitOps writes, `instance/mod.rs` for what becomes of it, `operator/mod.rs` for the loop,
//! `install/mod.rs` for what an administrator does to have all this.

mod connect;
pub mod install;
pub mod instance;
pub mod object;
pub mod operator;
pub mod quantity;
pub mod resources;

pub use connect::{ConnectError, connect};
pub use install::{Install, InstallError, Progress, Remove, install, uninstall};
pub use object::{Object, yaml};
pub use operator::{OperatorError, OperatorSettings, run};
pub use resources::{ComputeCluster, HardwareProfile, Instance};
