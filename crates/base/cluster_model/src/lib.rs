//! Clusters and workers as plain data: which clusters there should be, which workers there are, what is to be done to make the one of the
//! other, which worker owns which part of a shard.
//!
//! Decides and never acts: no SQL, no network, no files, no threads. Time is given by the caller.
//!
//! Start at `desired/mod.rs` for what a cluster is and `reconcile/mod.rs` for how it comes to be; `placement` and `balance.rs` are what a
//! statement meets.

pub mod activity;
pub mod balance;
pub mod desired;
pub mod events;
pub mod placement;
pub mod reconcile;
pub mod serving;
pub mod stop_reason;
pub mod worker;

pub use activity::Activity;
pub use balance::{Candidate, Choice, Unavailable};
pub use desired::{
    Actor, Author, Change, ClusterId, ClusterOptions, ClusterSpec, ClusterState, DesiredState, Error, FoundCluster,
    Grantee, HardwareInstance, HardwareKind, IfExists, Inventory, Privilege, Result, RoleRef, WlmProfile,
};
pub use events::{ClusterEvent, EventKind, History};
pub use placement::{Move, Ownership, Part, Placement};
pub use reconcile::{Action, Settings, reconcile};
pub use serving::{Phase, phase, serving};
pub use stop_reason::StopReason;
pub use worker::{Resources, Worker, WorkerId, WorkerSpec, WorkerState};

#[cfg(test)]
mod fixtures;
