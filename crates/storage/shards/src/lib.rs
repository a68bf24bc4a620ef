//! Settled rows: immutable Parquet files in object storage, what is known about them, and how they are read and written.
//!
//! Never decides visibility (`txn` does), never knows tables, names or SQL expressions (`catalog`, `planner`), never keeps a
//! file that was not finished.
//!
//! Start at `meta.rs` for what the catalog keeps per shard (`packed/`: how it keeps that of many), then `writer/` for a load,
//! `reader/` for a cold scan, `cache/` for a hot one, `foreign/` for files that others wrote.

pub mod buckets;
pub mod cache;
pub mod checksums;
pub mod datum;
mod error;
pub mod foreign;
pub mod hll;
pub mod meta;
pub mod packed;
pub mod predicate;
pub mod prune;
pub mod reader;
pub mod stats;
pub mod stored_form;
mod writer;

pub use buckets::{BUCKETS, BucketKeys, BucketRuns, ShardBuckets, buckets_of, has_buckets, is_hashable};
pub use cache::{
    BlockCache, BlockPlace, CacheDisk, CacheUse, CacheWishes, DiskPart, HotBlock, ResultKey, ShardResults, TableCache,
    TierUse,
};
pub use checksums::{Checksums, page_checksum};
pub use datum::Datum;
pub use error::{Error, Result};
pub use foreign::{ForeignFile, ForeignPlace};
pub use hll::Hll;
pub use meta::{ColumnDef, ColumnStats, ORDINAL_COLUMN, ROW_ID_COLUMN, RowGroupMeta, RowIds, ShardMeta};
pub use packed::PackedShards;
pub use predicate::{Op, Predicate, Test, Zone};
pub use prune::{Pruner, Pruning};
pub use reader::{RowGroupRead, RowGroupRows, SEGMENT_ROWS, ShardReader, far_stretch_rows, missing_value};
pub use stats::RowSample;
pub use writer::{Encoded, Encoder, ShardWriter, WriteOptions};
