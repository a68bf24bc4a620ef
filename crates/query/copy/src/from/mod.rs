//! COPY FROM: one sequential pass cuts bytes into chunks at record boundaries, chunks are parsed in parallel, and their
//! batches enter the write plan in the order of the input.
//!
//! In reading order:
//! - `copy_from.rs`: one COPY FROM; `input_source.rs`: its inputs.
//! - `input_layout.rs`: format, columns and options of the input.
//! - `record_chunks.rs`, `chunk_cutter.rs`: cut the bytes of all inputs into chunks; `text_boundaries.rs`,
//!   `csv_boundaries.rs`, `binary_boundaries.rs`: find record boundaries in each format.
//! - `parallel_parse.rs`: parses chunks in parallel, to a stream of batches; `parse_chunk.rs`: parses one chunk.
//! - `split_text.rs`, `split_csv.rs`: split chunks into fields (`record_fields.rs`); `header.rs` checks header lines.
//! - `error_context.rs`: the context of errors.
//! - `parquet.rs`: reads Parquet files instead.

mod binary_boundaries;
mod chunk_cutter;
mod copy_from;
mod csv_boundaries;
mod error_context;
mod header;
mod input_layout;
mod input_source;
mod parallel_parse;
mod parquet;
mod parse_chunk;
mod record_chunks;
mod record_fields;
mod split_csv;
mod split_text;
mod text_boundaries;

#[cfg(test)]
mod tests;

pub(crate) use binary_boundaries::{SIGNATURE, TRAILER};
pub use copy_from::CopyFromOutcome;
pub(crate) use input_layout::{DelimitedOptions, HeaderMode, InputLayout, RecordFormat, TargetColumn};
pub(crate) use parallel_parse::{ErrorPolicy, ParseProgress};
pub(crate) use record_chunks::{InputItem, InputStream};
