//! COPY TO: encodes batches as text, CSV, binary or a Parquet file.

mod copy_to;
mod parquet;
mod row_encoding;

#[cfg(test)]
mod tests;

pub use copy_to::{CopyChunk, CopyOut};
#[cfg(test)]
pub(crate) use row_encoding::{Column, EncodedRows, RowFormat, RowStyle};
