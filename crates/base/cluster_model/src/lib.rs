//! Clusters and workers as plain data: desired state, observed workers, reconciliation, and placement of parts of
//! shards.
//!
//! Pure decisions: no SQL, network, files or threads, and the caller passes the time.
//!
//! - `desired/`: the clusters that an instance should have, and changes to them
//! - `worker.rs`: observed workers
//! - `reconcile/`: the actions that make the workers match the desired state
//! - `serving.rs`: the workers of a cluster that get statements, and the cluster's phase
//! - `balance.rs`, `activity.rs`: the choice of a cluster for a statement
//! - `placement/`: the owner of each part of a shard
//! - `events.rs`: the history of clusters and workers
//! - `stop_reason.rs`: reasons for stopping a worker

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
    Actor, Author, CLUSTER_OPTIONS, Change, ClusterId, ClusterOption, ClusterOptions, ClusterSpec, ClusterState,
    DesiredState, Error, ExternalCluster, Grantee, HardwareInstance, HardwareKind, IfExists, Inventory, OptionForm,
    OptionValue, Privilege, Result, RoleRef, WlmProfile, WorkerOptions,
};
pub use events::{ClusterEvent, EventHistory, EventKind};
pub use placement::{Move, Ownership, Part, Placement};
pub use reconcile::{Action, ReconcileSettings, reconcile};
pub use serving::{Phase, cluster_phase, serving_workers};
pub use stop_reason::StopReason;
pub use worker::{Resources, Worker, WorkerId, WorkerSpec, WorkerState};

#[cfg(test)]
mod fixtures;
