//! Runs one query on several workers through the library `datafusion-distributed`.
//!
//! No other crate uses that library, except that `compile` recognizes its operators at which rows of other stages
//! arrive. This crate neither chooses the workers of a cluster nor knows sessions. Each part of a table is assigned to
//! one worker, so no row is read twice.
//!
//! In reading order:
//!
//! - `plan.rs` turns a query into stages on workers, or into a single task on one worker (`whole.rs`).
//! - Before the plan is cut: `reason.rs` decides whether a plan may leave the instance, `values.rs` evaluates scalar
//!   subqueries, `keys.rs` runs semi-join reductions, `joins.rs` chooses between broadcast and shuffle joins,
//!   `shape.rs` adapts the plan to the library.
//! - Exchanges between workers that are avoided: `in_place.rs` and `located.rs` for tables that are distributed on a
//!   key or replicated, `within.rs` for the exchange between threads that remains, `owners.rs` for joins in which one
//!   side does not move.
//! - Scans: `leaf.rs` divides them among workers, as `assign.rs` computes it.
//! - Transport: `codec/` encodes plan fragments, `channel.rs` sends them over pooled connections (`open.rs`), with the
//!   query's settings in a header (`facts.rs`).
//! - Execution: `worker.rs` sets up tasks on a worker and `stage.rs` runs them, `active.rs` counts their open streams,
//!   `head.rs` runs the root stage in the instance, `compiled.rs` compiles plans that stay in the instance.
//! - Results beside rows: `failure.rs` transports errors, `reports.rs` collects what EXPLAIN ANALYZE shows, `shown.rs`
//!   and `spread.rs` what EXPLAIN shows.
//! - `prepared.rs` and `resources.rs` are what callers pass in and get back.
//! - `ahead.rs` warms the caches of workers with new shards.

mod active;
mod ahead;
mod assign;
mod channel;
pub mod codec;
mod compiled;
mod facts;
mod failure;
mod head;
mod in_place;
mod joins;
mod keys;
mod leaf;
mod located;
mod open;
mod owners;
mod plan;
mod prepared;
mod reason;
mod reports;
mod resources;
mod shape;
mod shown;
mod spread;
mod stage;
mod values;
mod whole;
mod within;
mod worker;

pub use self::ahead::{AheadUse, NewShards, pieces};
pub use self::assign::{Cluster, Without};
pub use self::channel::{ByteStream, Channels, Dial};
pub use self::codec::message_bytes;
pub use self::compiled::{compiled, is_compiled};
pub use self::failure::lost_worker;
pub use self::joins::JoinExchange;
pub use self::owners::ToOwnersExec;
pub use self::plan::{Distribution, Exchange, Planning, Purpose};
pub use self::prepared::{Place, Prepared};
pub use self::reason::{Reason, Undistributed, can_leave};
pub use self::reports::{Report, Reports};
pub use self::resources::QueryResources;
pub use self::shown::{Shown, is_distributed, shown};
pub use self::spread::Spread;
pub use self::within::{WithinTasksExec, meets_within_tasks};
pub use self::worker::{Worker, WorkerShare};
