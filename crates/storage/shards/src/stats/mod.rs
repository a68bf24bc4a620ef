//! What is learnt about a column while its values are written: bounds, distinct values, order, runs, frequent values.
//!
//! Start at `tally.rs` for how a column is followed; `sample.rs` draws rows, of which `frequent.rs` finds frequent values.

mod frequent;
pub(crate) mod hash;
mod sample;
mod tally;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use frequent::heavy_hitters;
pub(crate) use hash::mix;
pub use sample::RowSample;
pub(crate) use tally::{Bounds, Tally};
