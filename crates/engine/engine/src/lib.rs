//! The engine: pipelines over packed columns, from a scan's blocks to an operator's answer, without Arrow's arrays between.
//!
//! Owns the forms of values between steps (`vector`), expressions over them (`expression`), grouping (`aggregate`), joins (`join`), sorting
//! (`sort`), window functions (`window`), the steps themselves (`pipeline`) and how rows leave memory (`spill`).
//! Knows no plans, no files, no threads: `compile` makes programs of plans, drives them and brings them batches.
//!
//! Fast loops compute only values in range. A batch with another one (too large, a division by zero) is evaluated again by the expression's fallback
//! ([`expression::Fallback`]), which returns the values or PostgreSQL's error. Every other [`Error`] ends the query.

pub mod aggregate;
pub mod arrow_form;
mod digest;
mod error;
pub mod expression;
pub mod join;
pub mod pipeline;
mod portions;
pub mod sort;
pub mod spill;
mod stop;
pub mod vector;
pub mod window;

pub use digest::{Digest, Digesting};
pub use error::{Error, Result};
pub(crate) use stop::{GOES_ON, STRETCH_ROWS, run_part, unless_stopped};
pub use stop::{PartRunner, run_parts_by};
pub(crate) use vector::TextNumbers;
pub use vector::{Batch, Bits, Bounds, Column, Data, Form, Selection, Strings};

/// Rows of a batch, about: its columns stay in the second-level cache from one step to the next.
pub const BATCH_ROWS: usize = 4096;

/// Instead of the number of a row, a group or a string: there is none.
const NONE: u32 = u32::MAX;
