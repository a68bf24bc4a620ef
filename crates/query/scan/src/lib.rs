//! Rows of tables out of storage: scans of shards and of fresh rows, divided into parts, and rows found by key.
//!
//! Never decides what is visible: a snapshot's rows come in. Knows no query but the scan itself.
//!
//! Start at [`ScanPlanner`] for how a scan is made of a table, at [`ShardScanExec`] for how it is read, and at [`KeyLookup`] for rows by key.

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
