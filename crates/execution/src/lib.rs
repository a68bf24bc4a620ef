//! Runs plans: shard scans, writes, COPY both ways and EXPLAIN.
//!
//! Never parses SQL and never decides visibility: `planner` makes the plans, `txn` commits what they wrote.
//!
//! Start at `execution.rs` for what a server holds and `run/` for how a query runs; then `scan/`, `write/` for rows on their
//! way into tables, `copy/` for loading and unloading.

mod cache_keeper;
pub mod copy;
mod cover;
pub mod distribute;
mod error;
mod execution;
mod explain;
mod external;
#[cfg(test)]
mod fixtures;
mod fragment_cache;
mod lookup;
pub mod modify;
#[cfg(test)]
mod planning_work;
mod point;
pub mod progress;
mod ran;
mod row_bytes;
mod run;
mod scan;
mod settle;
#[cfg(test)]
mod sql_fixture;
mod table_columns;
mod table_rows;
mod write;

pub use error::from_txn;
pub use execution::{Config, Execution};
pub use external::ExternalFiles;
pub use lookup::{Found, KeyColumns, KeyLookup};
pub use point::{PointProgram, PointRows, PointRun, StoredRows};
pub use progress::Progress;
pub use ran::Ran;
pub use run::{RowStream, RunContext};
pub use scan::{FRESH_PLACE, PartKey};
pub use settle::{FreshLimits, Pace, SettleSettings, WriteThrottle};
pub use shards::BUCKETS;
pub use shards::{CacheDisk, DiskPart, TierUse};
pub use table_columns::{column_defs, place_columns};
pub use table_rows::tuples;
pub use write::{Load, Loaded, stage_rows};
