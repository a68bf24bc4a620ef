//! COPY FROM: bytes are cut into chunks at record boundaries by one fast pass in order, chunks are parsed side by side on
//! several cores, and their batches flow in the order of the input into the write plan.
//!
//! Start at `chunks.rs` for the bytes and `parse.rs` for what becomes of a chunk.

mod chunks;
mod context;
mod csv;
mod cut;
mod cut_binary;
mod cut_csv;
mod cut_text;
mod fields;
mod header;
mod layout;
mod parquet;
mod parse;
mod rows;
mod run;
mod source;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use chunks::{Piece, Pieces};
pub(crate) use cut_binary::{SIGNATURE, TRAILER};
pub(crate) use layout::{Dialect, Header, Layout, Marks, Target};
pub(crate) use rows::{RowCount, Tolerance, rows};
pub use run::Copied;
