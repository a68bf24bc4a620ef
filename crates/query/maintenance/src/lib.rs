//! Background maintenance of tables: flush of fresh rows to shards, compaction of shards, and retention in the caches.
//!
//! Never changes the result of a query: rows only move, in transactions of the maintenance itself.
//!
//! In reading order:
//! - `maintenance.rs`: [`Maintenance`], the service.
//! - `keep.rs`: the background loop that decides which tables are due; `patience.rs` delays retries after failures.
//! - `settle.rs`: one flush or one compaction of a table, as a transaction.
//! - `rewrite.rs`: writes rows to new shards and keeps their row ids.
//! - `choose.rs`: selects the shards to compact.
//! - `redistribute.rs`: rewrites shards that were written before the table was distributed on its present key.
//! - `pace.rs`: [`WriteThrottle`], the backpressure on writers while flushing falls behind.
//! - `cache_keeper.rs`: [`CacheKeeper`], which tells the caches the shards and retention policies of all tables.

mod cache_keeper;
mod choose;
mod keep;
mod maintenance;
mod pace;
mod patience;
mod redistribute;
mod rewrite;
mod settle;

pub use cache_keeper::CacheKeeper;
pub use keep::SettleSettings;
pub use maintenance::Maintenance;
pub use pace::{FreshLimits, Pace, WriteThrottle};
