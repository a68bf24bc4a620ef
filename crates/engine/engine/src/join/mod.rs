//! Hash joins: workers collect the build side, it becomes one hash table, and batches of the probe side are matched
//! against it.
//!
//! The key columns of a row are packed into one 64-bit integer, the row's key code ([`words`]). An [`index`] maps key
//! codes to groups of build rows with equal keys, and the rows of a group are adjacent ([`groups`]). Everything after
//! that works on pairs of row numbers.
//!
//! - `spec`: join kinds and the specification of a join
//! - `build`, `table`: collecting the build side, and the finished hash table
//! - `words`, `encoding`, `numbers`: packing of key columns into key codes
//! - `index`, `ranked`, `slots`, `groups`: lookup structures from key codes to build rows
//! - `probe`, `residual`, `not_in`, `output`: matching of probe batches and their output
//! - `marks`, `rest`: matched build rows, and the build rows returned after probing
//! - `pieces`: probing of a build side that is larger than memory, chunk by chunk
//! - `filter`, `bloom`, `text_filter`: runtime filters for scans of the probe side

mod bloom;
mod build;
mod build_output;
mod chunked;
mod filter;
mod hash_index;
mod index;
mod key_encoding;
mod key_packing;
mod match_bitmap;
mod not_in;
mod output;
mod pair_interner;
mod probe;
mod rank_bitmap;
mod residual;
mod row_groups;
mod spec;
mod table;
mod text_filter;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;

pub use build::BuildCollector;
pub use chunked::ProbeMatches;
pub use filter::KeyFilter;
pub use probe::ProbeScratch;
pub use spec::{JoinKind, JoinSpec, OutputColumn, Residual};
pub use table::JoinHashTable;
pub use text_filter::TextKeyFilter;

/// Key code of a row whose key matches no build row.
const NO_KEY_CODE: u64 = u64::MAX;
