//! Clusters and workers as plain data: desired state, observed workers, reconciliation, and placement of parts of
//! shards.
//!
//! Pure decisions: no SQL, network, files or threads, and the caller passes the time.
//!
//! - `desired_state/`: the clusters that an instance should have, and changes to them
//! - `worker.rs`: observed workers
//! - `reconcile/`: the actions that make the workers match the desired state
//! - `serving_workers.rs`: the workers of a cluster that get statements, and the cluster's phase
//! - `choose_cluster.rs`, `cluster_activity.rs`: the choice of a cluster for a statement
//! - `placement/`: the owner of each part of a shard
//! - `cluster_events.rs`: the history of clusters and workers
//! - `stop_reason.rs`: reasons for stopping a worker

pub mod choose_cluster;
pub mod cluster_activity;
pub mod cluster_events;
pub mod desired_state;
pub mod placement;
pub mod reconcile;
pub mod serving_workers;
pub mod stop_reason;
pub mod worker;

pub use choose_cluster::{Candidate, Choice, NoClusterAvailable};
pub use cluster_activity::ClusterActivity;
pub use cluster_events::{ClusterEvent, EventHistory, EventKind};
pub use desired_state::{
    Actor, Author, CLUSTER_OPTIONS, Change, ClusterId, ClusterOption, ClusterOptions, ClusterSpec, ClusterState,
    DesiredState, Error, ExternalCluster, Grantee, HardwareInstance, HardwareKind, IfExists, Inventory, OptionForm,
    OptionValue, Privilege, Result, RoleRef, WlmProfile, WorkerOptions,
};
pub use placement::{OwnerChange, Ownership, Part, Placement};
pub use reconcile::{Action, ReconcileSettings, reconcile};
pub use serving_workers::{ClusterPhase, cluster_phase, serving_workers};
pub use stop_reason::StopReason;
pub use worker::{Resources, Worker, WorkerId, WorkerSpec, WorkerState};

#[cfg(test)]
mod fixtures;
