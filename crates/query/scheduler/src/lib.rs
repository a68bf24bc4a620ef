//! Threads that queries take turns on, memory that they share, and room for what they spill.
//!
//! Never knows SQL, the catalog or a table: callers bring tasks, and it decides when each runs and how much memory it may take.
//!
//! Start at `config.rs` for how much there is, at `threads/` for how tasks have their turns, `query_memory.rs` for what one query may take, and `lease.rs` for what a statement holds
//! while it runs. `worker_memory.rs` is a worker's share of the memory, `runtime.rs` what all operators share.

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
