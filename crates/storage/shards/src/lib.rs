//! Flushed rows: immutable Parquet files (shards) in object storage, their statistics, and how they are written, read,
//! pruned and cached.
//!
//! This crate does not decide visibility (`txn` does), does not know tables, names or SQL expressions (`catalog`,
//! `planner` do), and never leaves an unfinished file behind.
//!
//! In reading order:
//!
//! - `shard_meta.rs`: metadata of a shard in the catalog; `packed_metadata/`: the same for many shards.
//! - `stats/`: column statistics; `hll.rs`: distinct counts.
//! - `predicate.rs`, `prune/`: filters on statistics, which skip shards, row groups and pages.
//! - `writer/`: loads; `stored_types.rs`: column types in files; `checksums.rs`: checksums of pages; `buckets/`:
//!   distributed tables.
//! - `reader/`: scans of files; `cache/`: scans through the column cache.
//! - `external/`: Parquet files that other programs wrote.

pub mod buckets;
pub mod cache;
pub mod checksums;
pub mod datum;
mod error;
pub mod external;
pub mod hll;
pub mod packed_metadata;
pub mod predicate;
pub mod prune;
pub mod reader;
pub mod shard_meta;
pub mod stats;
pub mod stored_types;
mod writer;

pub use buckets::{
    BUCKET_COUNT, BucketKeys, BucketRunsBuilder, ShardBuckets, compute_buckets, is_hashable, is_hashable_arrow,
};
pub use cache::{
    BlockCache, BlockLocation, CacheStats, DiskQuota, DiskTierSettings, HotBlock, ResultKey, RetentionPolicy,
    ShardResultCache, TableCache, TierStats,
};
pub use checksums::{Checksums, page_checksum};
pub use datum::Datum;
pub use error::{Error, Result};
pub use external::{ExternalFile, ExternalFileLocation};
pub use hll::Hll;
pub use packed_metadata::PackedShards;
pub use predicate::{CompareOp, Predicate, Test, ZoneMapEntry};
pub use prune::{Pruner, Pruning};
pub use reader::{FETCH_ROWS_MIN, RowGroupRead, RowGroupRows, ShardReader, missing_value, remote_fetch_rows};
pub use shard_meta::{ColumnDef, ColumnStats, ORDINAL_COLUMN, ROW_ID_COLUMN, RowGroupMeta, RowIds, ShardMeta};
pub use stats::RowSample;
pub use writer::{EncodedFile, Encoder, ShardWriter, WriteOptions};
