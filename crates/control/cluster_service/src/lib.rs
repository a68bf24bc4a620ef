//! The instance's view of its clusters, as sessions meet them: who may run where, whose turn it is, and on which worker.
//!
//! Never runs a query and never parses a statement: which clusters there should be a control plane decides, this keeps it going.
//!
//! Start at [`Clusters`]. It is kept going (`keep.rs`), changed by statements (`change.rs`) and shown (`show.rs`). Where workers are processes, `divide.rs`
//! says how a statement is divided among them, `owners.rs` who of them owns parts of shards, `loads.rs` what they are told of new ones, and `whole.rs` what
//! each of them runs alone.

mod change;
mod clusters;
mod divide;
mod keep;
mod loads;
mod owners;
mod show;
mod whole;

pub use clusters::{Chosen, ClusterSettings, Clusters, PlaneParts};
