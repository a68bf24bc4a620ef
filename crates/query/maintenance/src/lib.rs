//! Background maintenance of tables: flush of fresh rows to shards, compaction of shards, and retention in the caches.
//!
//! Never changes the result of a query: rows only move, in transactions of the maintenance itself.
//!
//! In reading order:
//! - `maintenance.rs`: [`Maintenance`], the service.
//! - `flush_loop.rs`: the background loop that decides which tables are due; `backoff.rs` delays retries after
//!   failures.
//! - `flush.rs`: one flush or one compaction of a table, as a transaction.
//! - `rewrite_rows.rs`: writes rows to new shards and keeps their row ids.
//! - `compaction_choice.rs`: selects the shards to compact.
//! - `redistribute.rs`: rewrites shards that were written before the table was distributed on its present key.
//! - `write_throttle.rs`: [`WriteThrottle`], the backpressure on writers while flushing falls behind.
//! - `cache_retention.rs`: [`CacheRetentionService`], which tells the caches the shards and retention policies of all
//!   tables.

mod backoff;
mod cache_retention;
mod compaction_choice;
mod flush;
mod flush_loop;
mod maintenance;
mod redistribute;
mod rewrite_rows;
mod write_throttle;

pub use cache_retention::CacheRetentionService;
pub use flush_loop::FlushSettings;
pub use maintenance::Maintenance;
pub use write_throttle::{FreshLimits, ThrottleVerdict, WriteThrottle};
