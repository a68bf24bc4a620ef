//! COPY FROM: one sequential pass cuts bytes into chunks at record boundaries, chunks are parsed in parallel, and their
//! batches enter the write plan in the order of the input.
//!
//! In reading order:
//! - `run.rs`: one COPY FROM; `source.rs`: its inputs.
//! - `layout.rs`: format, columns and options of the input.
//! - `chunks.rs`, `chunk_cutter.rs`: cut the bytes of all inputs into chunks; `scan_text.rs`, `scan_csv.rs`, `scan_binary.rs`: find
//!   record boundaries in each format.
//! - `parallel.rs`: parses chunks in parallel, to a stream of batches; `parse.rs`: parses one chunk.
//! - `text.rs`, `csv.rs`: split chunks into fields (`fields.rs`); `header.rs` checks header lines.
//! - `error_context.rs`: the context of errors.
//! - `parquet.rs`: reads Parquet files instead.

mod chunk_cutter;
mod chunks;
mod csv;
mod error_context;
mod fields;
mod header;
mod layout;
mod parallel;
mod parquet;
mod parse;
mod run;
mod scan_binary;
mod scan_csv;
mod scan_text;
mod source;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use chunks::{InputItem, InputStream};
pub(crate) use layout::{DelimitedOptions, HeaderMode, InputLayout, RecordFormat, TargetColumn};
pub(crate) use parallel::{ErrorPolicy, ParseProgress};
pub use run::CopyFromOutcome;
pub(crate) use scan_binary::{SIGNATURE, TRAILER};
