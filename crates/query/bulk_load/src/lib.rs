//! Bulk load: rows are put in the table's order, cut into shards, written in parallel, and sampled.
//!
//! Nothing is visible before the transaction commits, and a failed load leaves nothing behind. Never checks keys and
//! never decides which rows are written.
//!
//! In reading order:
//! - `loader.rs`: [`Loader`], which creates loads; `load.rs`: [`Load`], one load from streams of rows to shards.
//! - `shard_splitter.rs`: [`ShardSplitter`], which cuts one stream into shards; `table_conversion.rs` checks batches
//!   before the write.
//! - `sort_plan.rs`: sorts rows in the table's order; `hilbert_order.rs` along a Hilbert curve (`hilbert_curve.rs`).
//! - `bucket_order.rs`: sorts rows by bucket and order; `bucket_grouping.rs` groups them by bucket in memory, without
//!   sorting.
//! - `table_sample.rs`: the sample of a table's rows in the catalog.

mod bucket_grouping;
mod bucket_order;
mod hilbert_curve;
mod hilbert_order;
mod load;
mod loader;
mod shard_splitter;
mod sort_plan;
mod table_conversion;
pub mod table_sample;

pub use load::{Load, LoadResult, StreamResult, stage_rows};
pub use loader::Loader;
pub use shard_splitter::{BUCKET_SHARD_BYTES_MIN, ShardSplitter};
pub use sort_plan::plan_table_order;
pub use table_conversion::BatchConformer;
