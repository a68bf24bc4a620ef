//! Bulk load: rows are put in the table's order, cut into shards, written in parallel, and sampled.
//!
//! Nothing is visible before the transaction commits, and a failed load leaves nothing behind. Never checks keys and
//! never decides which rows are written.
//!
//! In reading order:
//! - `loader.rs`: [`Loader`], which creates loads; `load.rs`: [`Load`], one load from streams of rows to shards.
//! - `shard_splitter.rs`: [`ShardSplitter`], which cuts one stream into shards; `conform.rs` checks batches before the write.
//! - `order.rs`: sorts rows in the table's order; `hilbert_order.rs` along a Hilbert curve (`hilbert.rs`).
//! - `bucket_order.rs`: sorts rows by bucket and order; `bucket_grouping.rs` groups them by bucket in memory, without sorting.
//! - `sample.rs`: the sample of a table's rows in the catalog.

mod bucket_grouping;
mod bucket_order;
mod conform;
mod hilbert;
mod hilbert_order;
mod load;
mod loader;
mod order;
pub mod sample;
mod shard_splitter;

pub use conform::BatchConformer;
pub use load::{Load, LoadResult, StreamResult, stage_rows};
pub use loader::Loader;
pub use order::plan_table_order;
pub use shard_splitter::{BUCKET_SHARD_BYTES_MIN, ShardSplitter};
