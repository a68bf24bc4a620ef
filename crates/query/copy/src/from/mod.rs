//! COPY FROM: one sequential pass cuts bytes into chunks at record boundaries, chunks are parsed in parallel, and their
//! batches enter the write plan in the order of the input.
//!
//! In reading order:
//! - `run.rs`: one COPY FROM; `source.rs`: its inputs.
//! - `layout.rs`: format, columns and options of the input.
//! - `chunks.rs`, `cut.rs`: cut the bytes of all inputs into chunks; `cut_text.rs`, `cut_csv.rs`, `cut_binary.rs`: find
//!   record boundaries in each format.
//! - `rows.rs`: parses chunks in parallel, to a stream of batches; `parse.rs`: parses one chunk.
//! - `text.rs`, `csv.rs`: split chunks into fields (`fields.rs`); `header.rs` checks header lines.
//! - `context.rs`: the context of errors.
//! - `parquet.rs`: reads Parquet files instead.

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
