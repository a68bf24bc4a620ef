//! COPY TO: batches to rows of text, CSV or binary, or to a Parquet file.

mod parquet;
mod rows;
mod run;

#[cfg(test)]
mod tests;

pub use run::{CopyOut, CopyPiece};
