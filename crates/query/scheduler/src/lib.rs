//! Schedules query tasks on threads, and bounds the memory and disk space that queries use.
//!
//! Knows neither SQL nor the catalog nor tables: callers bring tasks; this crate decides when each runs and how much
//! memory it may take.
//!
//! In reading order:
//!
//! - `config.rs` holds the limits.
//! - `threads/` runs tasks in time slices ("turns").
//! - `runtime.rs` sets up what all operators share: the memory pool and the spill folder. `spill_room.rs` adapts the
//!   spill limit to the free disk space.
//! - `query_memory.rs` is the memory pool of one query, `worker_memory.rs` that of a worker.
//! - `lease.rs` is what a statement holds of a worker while it runs.

mod config;
mod lease;
mod query_memory;
mod runtime;
mod spill_room;
mod threads;
mod worker_memory;

pub use config::{Config, query_threads};
pub use lease::{Hold, Lease};
pub use query_memory::{MemoryUse, QueryMemory};
pub use runtime::{SpillSettings, bound_values, runtime};
pub use spill_room::keep_spill_room;
pub use threads::{
    PlanningThreads, Priority, QueryShare, StandingThread, Threads, at_length, beside, clock, outside, pause, place,
    standing_threads,
};
pub use worker_memory::WorkerMemory;
