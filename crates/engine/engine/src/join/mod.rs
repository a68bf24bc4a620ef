//! Hash joins: workers collect the build side, it becomes one hash table, and batches of the probe side are matched
//! against it.
//!
//! The key columns of a row are packed into one 64-bit integer, the row's key code (`key_packing`). A `key_index`
//! maps key codes to groups of build rows with equal keys, and the rows of a group are adjacent
//! (`build_rows_by_key`). Everything after that works on pairs of row numbers.
//!
//! - `spec.rs`: join kinds and the specification of a join
//! - `build_collector.rs`, `hash_table.rs`: collecting the build side, and the finished hash table
//! - `key_packing.rs`, `key_encoding.rs`, `pair_interner.rs`: packing of key columns into key codes
//! - `key_index.rs`, `rank_bitmap.rs`, `hash_index.rs`, `build_rows_by_key.rs`: from key codes to build rows
//! - `probe.rs`, `residual.rs`, `not_in.rs`, `pair_output.rs`: matching of probe batches and their output
//! - `match_bitmap.rs`, `output_build_rows.rs`: matched build rows, and the build rows returned after probing
//! - `chunked_build.rs`: probing of a build side that is larger than memory, chunk by chunk
//! - `runtime_filter.rs`, `bloom.rs`, `text_runtime_filter.rs`: runtime filters for scans of the probe side

mod bloom;
mod build_collector;
mod build_rows_by_key;
mod chunked_build;
mod hash_index;
mod hash_table;
mod key_encoding;
mod key_index;
mod key_packing;
mod match_bitmap;
mod not_in;
mod output_build_rows;
mod pair_interner;
mod pair_output;
mod probe;
mod rank_bitmap;
mod residual;
mod runtime_filter;
mod spec;
mod text_runtime_filter;

#[cfg(test)]
mod cost_benchmark;
#[cfg(test)]
mod tests;

pub use build_collector::BuildCollector;
pub use chunked_build::ProbeMatches;
pub use hash_table::JoinHashTable;
pub use probe::ProbeScratch;
pub use runtime_filter::KeyFilter;
pub use spec::{JoinKind, JoinSpec, OutputColumn, Residual};
pub use text_runtime_filter::TextKeyFilter;

/// Key code of a row whose key matches no build row.
const NO_KEY_CODE: u64 = u64::MAX;
