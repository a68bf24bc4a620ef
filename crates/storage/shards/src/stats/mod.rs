//! Column statistics collected while a shard is written: bounds, distinct values, order, runs and frequent values.
//!
//! - `collector.rs`: collects the statistics of a column; `value_visitor.rs`: iterates over values of Arrow arrays;
//!   `value_hash.rs`: hashes them.
//! - `row_sample.rs`: draws a sample of rows; `frequent_values.rs`: finds frequent values in it.

mod collector;
mod frequent_values;
mod row_sample;
pub(crate) mod value_hash;
mod value_visitor;

#[cfg(test)]
mod tests;

pub(crate) use collector::{ColumnStatsCollector, MinMax};
pub(crate) use frequent_values::heavy_hitters;
pub use row_sample::RowSample;
pub(crate) use value_hash::mix;
