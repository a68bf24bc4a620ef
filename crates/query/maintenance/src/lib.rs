//! Background maintenance of tables: fresh rows into shards, shards into better ones, and what the caches go on holding.
//!
//! Never changes what a query answers: rows move, in commits of their own.
//!
//! Start at [`Maintenance`] and `settle.rs`; `pace.rs` is how writers are slowed where fresh rows come quicker than they settle.

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
