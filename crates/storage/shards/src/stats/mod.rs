//! Column statistics collected while a shard is written: bounds, distinct values, order, runs and frequent values.
//!
//! - `collector.rs`: collects the statistics of a column; `values.rs`: iterates over values of Arrow arrays; `hash.rs`:
//!   hashes them.
//! - `sample.rs`: draws a sample of rows; `frequent.rs`: finds frequent values in it.

mod collector;
mod frequent;
pub(crate) mod hash;
mod sample;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use collector::{ColumnStatsCollector, MinMax};
pub(crate) use frequent::heavy_hitters;
pub(crate) use hash::mix;
pub use sample::RowSample;
