//! Logical node of `generate_series`, which streams the rows of a series of any length.
//!
//! An analyzer rule of the binder replaces an UNNEST whose lists all come from `generate_series` by a [`ProjectSet`],
//! before constant folding can compute the lists. A series inside another list stays a list ([`functions::series`]) of
//! bounded length.

mod lateral;
mod project_set;

pub(crate) use self::lateral::lower_lateral;
pub use self::project_set::{ProjectSet, SetColumn};
