//! Bulk load: rows are put in the table's order, cut into shards, written in parallel, and sampled.
//!
//! Nothing is visible before the transaction commits, and a failed load leaves nothing behind. Never checks keys and
//! never decides which rows are written.
//!
//! In reading order:
//! - `loader.rs`: [`Loader`], which creates loads; `load.rs`: [`Load`], one load from streams of rows to shards.
//! - `shards_of.rs`: [`ShardsOf`], which cuts one stream into shards; `conform.rs` checks batches before the write.
//! - `order.rs`: sorts rows in the table's order; `cluster.rs` along a Hilbert curve (`hilbert.rs`).
//! - `bucketed.rs`: sorts rows by bucket and order; `rounds.rs` groups them by bucket in memory, without sorting.
//! - `sample.rs`: the sample of a table's rows in the catalog.

mod bucketed;
mod cluster;
mod conform;
mod hilbert;
mod load;
mod loader;
mod order;
mod rounds;
pub mod sample;
mod shards_of;

pub use conform::Conform;
pub use load::{Load, Loaded, Portion, stage_rows};
pub use loader::Loader;
pub use order::ordered;
pub use shards_of::{SMALL_BUCKET_BYTES, ShardsOf};
