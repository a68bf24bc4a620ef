//! Pages of a shard's column made into blocks, without arrays between them: numbers are unpacked into lanes and packed again, strings of a
//! dictionary become codes by it.
//!
//! `form.rs` says which columns can be; `chunk.rs` walks the pages of one, `page.rs` decodes one by `hybrid.rs` (levels and codes), `delta.rs`
//! and `unpack.rs`; `dictionary.rs` is what the codes mean. What cannot be decoded here goes through Arrow.

mod chunk;
mod delta;
mod dictionary;
mod form;
mod hybrid;
mod page;
mod unpack;
mod varint;

#[cfg(test)]
mod tests;

pub(super) use chunk::ChunkPages;

/// Why bytes are no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Malformed(&'static str);
