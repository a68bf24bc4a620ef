//! Hash joins: workers collect a build side, it becomes one table, batches of the probe side go through it.
//!
//! Keys of whatever types and number become one word for each row ([`words`]), a word's group of build rows is found in an [`index`],
//! and a group's rows are next to each other ([`groups`]). Everything after that handles pairs of row numbers.

mod bloom;
mod build;
mod encoding;
mod filter;
mod groups;
mod index;
mod marks;
mod not_in;
mod numbers;
mod output;
mod pieces;
mod probe;
mod ranked;
mod residual;
mod rest;
mod slots;
mod spec;
mod table;
mod text_filter;
mod words;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;

pub use build::Build;
pub use filter::KeyFilter;
pub use pieces::Matched;
pub use probe::ProbeScratch;
pub use spec::{JoinKind, JoinSpec, OutputColumn, Residual};
pub use table::JoinTable;
pub use text_filter::TextFilter;

/// Instead of a key's word: no build row has this key.
const NO_WORD: u64 = u64::MAX;
