//! Table scans over shards and unflushed rows, divided into parts, and lookups of rows by key.
//!
//! Never decides visibility: callers pass the rows of a snapshot. Knows no part of a query but the scan itself.
//!
//! Start at [`ScanPlanner`], which makes a scan of a table; [`ShardScanExec`] is its operator, and [`KeyLookup`] finds
//! rows by key.
//!
//! - `scan_planner.rs`, `scan.rs`, `exec.rs`: planning of a scan, its data, its operator,
//! - `predicates/`: filters as tests that statistics can answer,
//! - `parts.rs`, `rows.rs`, `pages.rs`: the parts of a scan, read as record batches by operators or as pages by the
//!   engine,
//! - `by_key.rs`, `fresh.rs`: unflushed rows, found by an index or all, as batches,
//! - `divided.rs`, `by_buckets.rs`, `portable.rs`: scans divided among workers, by parts or by buckets, and sent there,
//! - `order.rs`: unique and sorted columns, proven by statistics,
//! - `lookup/`: rows by key,
//! - `opened.rs`, `block_cache.rs`, `fragment_cache.rs`: caches of shard footers, column pages and aggregated groups,
//! - `table_columns.rs`, `table_rows.rs`, `column_form.rs`, `row_bytes.rs`: columns and rows of tables between batches
//!   and storage.

mod block_cache;
mod by_buckets;
mod by_key;
mod column_form;
mod divided;
mod exec;
mod fragment_cache;
mod fresh;
mod lookup;
mod opened;
mod order;
mod pages;
mod parts;
mod portable;
pub mod predicates;
mod row_bytes;
mod rows;
mod scan;
mod scan_planner;
mod table_columns;
mod table_rows;

pub use block_cache::block_cache;
pub use by_buckets::{ForWorkers, Lies};
pub use column_form::{in_form_of, with_digits};
pub use divided::PartKey;
pub use exec::ShardScanExec;
pub use fragment_cache::FragmentCache;
pub use fresh::{FRESH_PLACE, place_value, stored_column};
pub use lookup::{Access, Comparison, Found, KeyColumns, KeyLookup, KeyRange, comparison_of, fresh_in_order, pieces};
pub use opened::OpenedShards;
pub use pages::{PageRun, PageScan, Read};
pub use parts::Part;
pub use portable::{Malformed, PortableScan, Stays};
pub use row_bytes::row_bytes;
pub use rows::counter;
pub use scan::{Scan, ScanShard};
pub use scan_planner::ScanPlanner;
pub use table_columns::{Bucketing, bucket_keys, column_def, column_defs, place_columns};
pub use table_rows::{columns_from, ordered_rows, tuples};
