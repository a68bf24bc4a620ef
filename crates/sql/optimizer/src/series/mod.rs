//! The node of `generate_series`, whose rows are made one by one, whatever the length of the series.
//!
//! An analyzer rule of the binder puts a [`ProjectSet`] in the place of an UNNEST whose lists all come from `generate_series`, before
//! anything could compute the lists. A series within another list stays a list
//! ([`functions::series`]), of bounded length.

mod lateral;
mod node;

pub(crate) use self::lateral::beside;
pub use self::node::{ProjectSet, SetColumn};
