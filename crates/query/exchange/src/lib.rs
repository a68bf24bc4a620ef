//! Runs one query on several workers through the library `datafusion-distributed`.
//!
//! No other crate uses that library, except that `compile` recognizes its operators at which rows of other stages
//! arrive. This crate neither chooses the workers of a cluster nor knows sessions. Each part of a table is assigned to
//! one worker, so no row is read twice.
//!
//! In reading order:
//!
//! - `distributed_planner.rs` turns a query into stages on workers, or into a single task on one worker
//!   (`single_task.rs`).
//! - Before the plan is cut: `check_distributable.rs` decides whether a plan may leave the instance,
//!   `scalar_subqueries.rs` evaluates scalar subqueries, `semi_join_keys.rs` runs semi-join reductions,
//!   `join_distribution.rs` chooses between broadcast and shuffle joins, `stage_preparation.rs` adapts the plan to the
//!   library.
//! - Exchanges between workers that are avoided: `avoid_exchanges.rs` and `row_location.rs` for tables that are
//!   distributed on a key or replicated, `local_exchange.rs` for the exchange between threads that remains,
//!   `bucket_owners.rs` for joins in which one side does not move.
//! - Scans: `scan_tasks.rs` divides them among workers, as `task_assignment.rs` computes it.
//! - Transport: `codec/` encodes plan fragments, `worker_connections.rs` sends them over pooled connections
//!   (`connection_pool.rs`), with the query's settings in a header (`task_request_header.rs`).
//! - Execution: `worker_runtime.rs` sets up tasks on a worker and `task_exec.rs` runs them, `open_streams.rs` counts their open
//!   streams, `root_stage.rs` runs the root stage in the instance, `local_plan.rs` compiles plans that stay in the
//!   instance.
//! - Results beside rows: `error_transport.rs` transports errors, `task_reports.rs` collects what EXPLAIN ANALYZE
//!   shows, `explain_view.rs` and `run_location.rs` what EXPLAIN shows.
//! - `prepared_query.rs` and `query_resources.rs` are what callers pass in and get back.
//! - `cache_warming.rs` warms the caches of workers with new shards.

mod avoid_exchanges;
mod bucket_owners;
mod cache_warming;
mod check_distributable;
pub mod codec;
mod connection_pool;
mod distributed_planner;
mod error_transport;
mod explain_view;
mod join_distribution;
mod local_exchange;
mod local_plan;
mod open_streams;
mod prepared_query;
mod query_resources;
mod root_stage;
mod row_location;
mod run_location;
mod scalar_subqueries;
mod scan_tasks;
mod semi_join_keys;
mod single_task;
mod stage_preparation;
mod task_assignment;
mod task_exec;
mod task_reports;
mod task_request_header;
mod worker_connections;
mod worker_runtime;

pub use self::bucket_owners::RouteToOwnersExec;
pub use self::cache_warming::{CacheWarmingStats, NewShards, shard_parts};
pub use self::check_distributable::{LocalQuery, LocalReason, check_distributable};
pub use self::codec::message_bytes;
pub use self::distributed_planner::{DistributedPlanner, DistributionContext, ExchangeConfig, Purpose};
pub use self::error_transport::lost_worker;
pub use self::explain_view::{ShownOperator, is_distributed, shown_operator};
pub use self::join_distribution::JoinDistribution;
pub use self::local_exchange::{LocalExchangeExec, is_colocated_join};
pub use self::local_plan::{compile_local, is_planned_undivided};
pub use self::prepared_query::{DistributedRun, PreparedQuery};
pub use self::query_resources::QueryResources;
pub use self::run_location::RunLocation;
pub use self::task_assignment::{Cluster, WithoutWorker};
pub use self::task_reports::{TaskReport, TaskReports};
pub use self::worker_connections::{ByteStream, Channels, Dialer};
pub use self::worker_runtime::{Worker, WorkerLimits};
