//! Decodes Parquet pages directly into blocks, without Arrow arrays in between; pages that cannot be decoded here go
//! through Arrow.
//!
//! - `supported_columns.rs`: which columns can be decoded here.
//! - `chunk.rs`: iterates over the pages of a column chunk; `page.rs`: decodes one of them.
//! - `rle_bit_packed.rs`, `delta.rs`, `unpack.rs`, `varint.rs`: Parquet's encodings.
//! - `dictionary.rs`: dictionary pages.

mod chunk;
mod delta;
mod dictionary;
mod page;
mod rle_bit_packed;
mod supported_columns;
mod unpack;
mod varint;

#[cfg(test)]
mod tests;

pub(super) use chunk::ChunkPageReader;

/// Reason for which bytes are not a valid page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Malformed(&'static str);
