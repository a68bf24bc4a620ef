//! `generate_series`, made row by row: an operator walks each series as its rows are asked for, whatever its length.
//!
//! An analyzer rule of the binder puts a [`ProjectSet`] in the place of an UNNEST whose lists all come from `generate_series`, before
//! anything could compute the lists; `exec.rs` runs it. A series within another list stays a list
//! ([`functions::series`]), of bounded length.

mod exec;
mod lateral;
mod node;
mod plan;

pub use self::exec::Column;
pub use self::exec::ProjectSetExec;
pub(crate) use self::lateral::beside;
pub use self::node::{ProjectSet, SetColumn};
pub use self::plan::Planning;
