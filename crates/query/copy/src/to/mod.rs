//! COPY TO: encodes batches as text, CSV, binary or a Parquet file.

mod parquet;
mod rows;
mod run;

#[cfg(test)]
mod tests;

pub use run::{CopyChunk, CopyOut};
