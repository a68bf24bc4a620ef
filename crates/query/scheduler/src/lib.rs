//! Schedules query tasks on threads, and bounds the memory and disk space that queries use.
//!
//! Knows neither SQL nor the catalog nor tables: callers bring tasks; this crate decides when each runs and how much
//! memory it may take.
//!
//! In reading order:
//!
//! - `resource_config.rs` holds the limits.
//! - `threads/` runs tasks in time slices ("turns").
//! - `operator_runtime.rs` sets up what all operators share: the memory pool and the spill folder. `spill_limit.rs`
//!   adapts the spill limit to the free disk space.
//! - `query_memory.rs` is the memory pool of one query, `worker_memory.rs` that of a worker.
//! - `worker_lease.rs` is what a statement holds of a worker while it runs.

mod operator_runtime;
mod query_memory;
mod resource_config;
mod spill_limit;
mod threads;
mod worker_lease;
mod worker_memory;

pub use operator_runtime::{SpillSettings, limit_large_values, operator_runtime};
pub use query_memory::{MemoryUse, QueryMemory};
pub use resource_config::{ResourceConfig, start_query_threads};
pub use spill_limit::enforce_spill_limit;
pub use threads::{
    PlanningThreads, Priority, QueryShare, QueryThreads, StuckThread, block_outside_turn, clock, in_same_query,
    long_run_permit, run_long, stuck_threads, yield_if_due,
};
pub use worker_lease::{Lease, WorkerRegistration};
pub use worker_memory::WorkerMemory;
