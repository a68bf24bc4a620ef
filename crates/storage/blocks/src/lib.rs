//! The execution encoding: blocks of up to 65,536 rows of one column, bit-packed so that predicates run without
//! decoding.
//!
//! The layout of blocks and dictionaries is in `docs/blocks.md`. The crate knows neither files nor Arrow nor SQL.
//!
//! In reading order:
//! - `block.rs`: an opened block
//! - `format.rs`: the header of a block; `kind.rs`: the types of values
//! - `body.rs`: the sections of a block's body
//! - `compare/`: predicates on blocks; `ranges.rs`, `text.rs`, `pattern.rs`: their constants
//! - `decode/`: unpacking of lanes and values; `row_set.rs`: sets of selected rows
//! - `encode/`: choice of an encoding and writing; `bitmap.rs`: validity of the input
//! - `dictionary/`: dictionaries of strings; `symbols.rs`: string compression (FSST)
//! - `float.rs`: order-preserving keys of floats and decimal encoding (ALP)
//! - `kernels/`: loops over vectors for several instruction sets, the only unsafe code
//! - `error.rs`: the crate's errors

mod bitmap;
mod block;
mod body;
#[macro_use]
mod decode;
mod compare;
mod dictionary;
mod encode;
mod error;
#[cfg(test)]
mod fixtures;
mod float;
mod format;
#[cfg(test)]
mod golden;
pub mod kernels;
mod kind;
mod pattern;
mod ranges;
mod row_set;
mod symbols;
mod text;
#[cfg(test)]
mod untrusted;

pub use bitmap::ValidityBitmap;
pub use block::Block;
pub use body::Runs;
pub use compare::{Comparison, Condition};
pub use decode::{BlockValue, Lanes, LanesBuffer, TextBuffer, TextValues, TextVector, Values};
pub use dictionary::{Dictionary, DictionaryBuilder, hash_text};
pub use encode::{
    Compression, encode_bool, encode_codes, encode_f32, encode_f64, encode_i32, encode_i64, encode_i128, encode_lanes,
    encode_text,
};
pub use error::{Error, Result};
pub use format::{BlockHeader, Encoding, VectorHeader};
pub use kind::ValueKind;
pub use pattern::LikePattern;
pub use ranges::{KeyRanges, PruneResult};
pub use row_set::RowSet;
pub use text::{TextCondition, TextMatcher};

/// Number of rows of a full vector, the unit that a kernel processes.
pub const VECTOR_ROWS: usize = 1024;
/// Number of vectors of a full block.
pub const BLOCK_VECTORS: usize = 64;
/// Number of rows of a full block.
pub const BLOCK_ROWS: usize = VECTOR_ROWS * BLOCK_VECTORS;

/// Bit mask over the rows of a vector: row `r` is bit `r % 64` of word `r / 64`.
pub type Mask = [u64; VECTOR_ROWS / 64];

/// Returns a mask of the first `rows` rows.
pub(crate) fn first_rows_mask(rows: usize) -> Mask {
    std::array::from_fn(|word| match rows.saturating_sub(word * 64) {
        0 => 0,
        some if some < 64 => (1 << some) - 1,
        _ => u64::MAX,
    })
}
