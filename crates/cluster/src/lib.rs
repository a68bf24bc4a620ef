//! Who runs where: which clusters there should be, which workers there are, what makes the one of the other, which worker owns which part
//! of a shard, and who may run now.
//!
//! Decides over plain data and acts through traits: no SQL, no network, no files, no threads. Time is given by the caller, or comes
//! from `types::Clock`.
//!
//! Start at `desired/mod.rs` for what a cluster is, `reconcile/mod.rs` for how it comes to be, `control_plane/mod.rs` for who is asked;
//! `placement`, `admission` and `balance.rs` are what a statement meets.

pub mod admission;
pub mod balance;
pub mod control_plane;
pub mod desired;
pub mod events;
pub mod placement;
pub mod reconcile;
pub mod revisions;
pub mod serving;
pub mod worker;

pub use admission::{Activity, Admission, Admit, Limits, Permit, Refusal};
pub use balance::{Candidate, Choice, Unavailable};
pub use control_plane::{
    ControlPlane, Guests, LocalControlPlane, PlaneError, StartWorker, StateStore, StopReason, Vouch, Vouched, Vouching,
    WorkerHost,
};
pub use desired::{
    Actor, Author, Change, ClusterId, ClusterOptions, ClusterSpec, ClusterState, DesiredState, Error, FoundCluster,
    Grantee, HardwareInstance, HardwareKind, IfExists, Inventory, Privilege, Result, RoleRef, WlmProfile,
};
pub use events::{ClusterEvent, EventKind, History};
pub use placement::{Move, Ownership, Part, Placement};
pub use reconcile::{Action, Settings, reconcile};
pub use revisions::Revisions;
pub use serving::{Phase, phase, serving};
pub use worker::{Resources, Worker, WorkerId, WorkerSpec, WorkerState};

#[cfg(test)]
mod fixtures;
