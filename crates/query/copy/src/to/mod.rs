//! COPY TO: encodes batches as text, CSV, binary or a Parquet file.

mod parquet;
mod rows;
mod run;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use rows::{Column, EncodedRows, RowFormat, RowStyle};
pub use run::{CopyChunk, CopyOut};
