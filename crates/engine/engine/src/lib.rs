//! Vectorized query engine: runs compiled pipelines over packed columns, from a scan's blocks to result batches,
//! without Arrow arrays in between.
//!
//! Modules in reading order:
//!
//! - `vector`: columns, batches and selections, the in-memory representation of values
//! - `expression`: scalar expressions over a batch
//! - `pipeline`: pipelines, their steps and the worker that runs them
//! - `aggregate`, `join`, `sort`, `window`: the stateful operators
//! - `spill`: partitioning and serialization of rows that leave memory
//! - `arrow_convert`: conversion from and to Arrow arrays
//! - `batch_splitting`, `cancellation`, `error`, `digest`: splitting of large batches, cancellation, errors and digests
//!   of computations
//!
//! The engine knows no plans, files or threads: crate `compile` compiles plans to programs, feeds them batches and
//! drives their workers.
//!
//! Fast loops compute only values within range. If a value of a batch is out of range (overflow, division by zero), the
//! expression's fallback ([`expression::Fallback`]) evaluates the batch again and returns the values or PostgreSQL's
//! error. Every other [`Error`] ends the query.

pub mod aggregate;
pub mod arrow_convert;
mod batch_splitting;
mod cancellation;
mod digest;
mod error;
pub mod expression;
pub mod join;
pub mod pipeline;
pub mod sort;
pub mod spill;
pub mod vector;
pub mod window;

pub(crate) use cancellation::{NEVER_STOPPED, STOP_CHECK_ROWS, check_stopped, run_yielding};
pub use cancellation::{YieldingRunner, set_yielding_runner};
pub use digest::{Digest, DigestBuilder};
pub use error::{Error, Result};
pub(crate) use vector::StringInterner;
pub use vector::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, PhysicalType, Selection};

/// Target number of rows of a batch: its columns stay in the L2 cache from one step to the next.
pub const BATCH_ROWS: usize = 4096;

/// Sentinel for "no row", "no group" and "no string" in arrays of indices.
const NONE: u32 = u32::MAX;
