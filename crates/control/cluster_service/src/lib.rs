//! Clusters as sessions use them: choice of a cluster, admission, and leases on workers.
//!
//! This crate neither runs queries nor parses statements. A control plane owns the clusters; this crate drives it.
//!
//! - `clusters.rs`: [`Clusters`], with the choice of a cluster, admission and leases
//! - `change_clusters.rs`: changes by statements
//! - `reconcile_loop.rs`: the reconciliation loop
//! - `system_table_rows.rs`: rows of the system tables
//! - `statement_distribution.rs`: distribution of a statement over worker processes
//! - `single_worker_queries.rs`: counts of the queries that workers run alone
//! - `slot_ownership.rs`: ownership of parts of shards, and cache hand-over when it changes
//! - `shard_announcements.rs`: announcements of new shards to workers

mod change_clusters;
mod clusters;
mod reconcile_loop;
mod shard_announcements;
mod single_worker_queries;
mod slot_ownership;
mod statement_distribution;
mod system_table_rows;

pub use clusters::{ChosenCluster, ClusterSettings, Clusters, ControlPlaneParts};
