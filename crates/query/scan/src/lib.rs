//! Table scans over shards and unflushed rows, divided into parts, and lookups of rows by key.
//!
//! Never decides visibility: callers pass the rows of a snapshot. Knows no part of a query but the scan itself.
//!
//! Start at [`ScanPlanner`], which makes a scan of a table; [`ShardScanExec`] is its operator, and [`KeyLookup`] finds
//! rows by key.
//!
//! - `scan_planner.rs`, `scan.rs`, `shard_scan_exec.rs`: planning of a scan, its data, its operator,
//! - `predicates/`: filters as tests that statistics can answer,
//! - `scan_parts.rs`, `partition_scan.rs`, `page_reader.rs`: the parts of a scan, read as record batches by operators
//!   or as pages by the engine,
//! - `unflushed_by_index.rs`, `unflushed_batch.rs`: unflushed rows, found by an index or all, as batches,
//! - `part_division.rs`, `bucket_division.rs`, `portable_scan.rs`: scans divided among workers, by parts or by buckets,
//!   and sent there,
//! - `shard_order.rs`: unique and sorted columns, proven by statistics,
//! - `lookup/`: rows by key,
//! - `open_shards.rs`, `block_cache.rs`, `fragment_cache.rs`: caches of shard footers, column pages and aggregated
//!   groups,
//! - `table_columns.rs`, `table_rows.rs`, `column_conversion.rs`, `row_bytes.rs`: columns and rows of tables between
//!   batches and storage.

mod block_cache;
mod bucket_division;
mod column_conversion;
mod fragment_cache;
mod lookup;
mod open_shards;
mod page_reader;
mod part_division;
mod partition_scan;
mod portable_scan;
pub mod predicates;
mod row_bytes;
mod scan;
mod scan_parts;
mod scan_planner;
mod shard_order;
mod shard_scan_exec;
mod table_columns;
mod table_rows;
mod unflushed_batch;
mod unflushed_by_index;

pub use block_cache::block_cache;
pub use bucket_division::{PlanForWorkers, RowDistribution};
pub use column_conversion::{convert_to_column_type, rescale_numeric};
pub use fragment_cache::FragmentCache;
pub use lookup::{
    Comparison, IndexAccess, KeyColumns, KeyLookup, KeyRange, LocatedRow, comparison_of, count_blocks,
    unflushed_in_key_order,
};
pub use open_shards::OpenShardCache;
pub use page_reader::{PageEvent, PageReader, PageRun};
pub use part_division::PartLocation;
pub use partition_scan::counter;
pub use portable_scan::{MalformedScan, NotPortable, PortableScan};
pub use row_bytes::row_bytes;
pub use scan::{Scan, ScanShard};
pub use scan_parts::Part;
pub use scan_planner::ScanPlanner;
pub use shard_scan_exec::ShardScanExec;
pub use table_columns::{BucketAssigner, bucket_keys, column_def, column_defs, row_locator_columns};
pub use table_rows::{encode_reordered, encode_table_rows, slice_columns};
pub use unflushed_batch::{UNFLUSHED_PLACE, encode_place, stored_column};
