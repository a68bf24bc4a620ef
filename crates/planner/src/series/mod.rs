//! `generate_series`, made row by row: an operator walks each series as its rows are asked for, whatever its length.
//!
//! Where UNNEST of lists that `generate_series` makes stands alone, an analyzer rule puts a [`node::ProjectSet`] in its place before
//! anything could compute the lists (`rule.rs`); `exec.rs` runs it. A series within another list stays a list
//! ([`functions::series`]), of bounded length.

mod exec;
mod lateral;
mod node;
mod plan;
mod rule;

pub use self::exec::Column;
pub(crate) use self::exec::ProjectSetExec;
pub(crate) use self::lateral::beside;
pub(crate) use self::plan::Planning;
pub(crate) use self::rule::StreamedSeries;
