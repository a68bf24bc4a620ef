//! Clusters as sessions use them: choice of a cluster, admission, and leases on workers.
//!
//! This crate neither runs queries nor parses statements. A control plane owns the clusters; this crate drives it.
//!
//! - `clusters.rs`: [`Clusters`], with the choice of a cluster, admission and leases
//! - `change.rs`: changes by statements
//! - `keep.rs`: the reconciliation loop
//! - `show.rs`: rows of the system tables
//! - `divide.rs`: distribution of a statement over worker processes
//! - `whole.rs`: counts of the queries that workers run alone
//! - `owners.rs`: ownership of parts of shards, and cache hand-over when it changes
//! - `loads.rs`: announcements of new shards to workers

mod change;
mod clusters;
mod divide;
mod keep;
mod loads;
mod owners;
mod show;
mod whole;

pub use clusters::{Chosen, ClusterSettings, Clusters, PlaneParts};
