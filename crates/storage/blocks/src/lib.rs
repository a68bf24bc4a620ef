//! The execution encoding: blocks of up to 65,536 rows of one column, bit-packed so that predicates run without
//! decoding.
//!
//! The layout of blocks and dictionaries is in `docs/blocks.md`. The crate knows neither files nor Arrow nor SQL.
//!
//! In reading order:
//! - `block.rs`: an opened block
//! - `block_header.rs`: the header of a block; `value_kind.rs`: the types of values
//! - `block_body.rs`: the sections of a block's body
//! - `compare/`: predicates on blocks; `key_ranges.rs`, `text_condition.rs`, `like_pattern.rs`: their constants
//! - `decode/`: unpacking of lanes and values; `row_set.rs`: sets of selected rows
//! - `encode/`: choice of an encoding and writing; `validity_bitmap.rs`: validity of the input
//! - `dictionary/`: dictionaries of strings; `fsst_symbols.rs`: string compression (FSST)
//! - `float_encoding.rs`: order-preserving keys of floats and decimal encoding (ALP)
//! - `kernels/`: loops over vectors for several instruction sets, the only unsafe code
//! - `error.rs`: the crate's errors

mod block;
mod block_body;
mod validity_bitmap;
#[macro_use]
mod decode;
mod block_header;
mod compare;
#[cfg(test)]
mod damaged_input_tests;
mod dictionary;
mod encode;
mod error;
mod float_encoding;
mod fsst_symbols;
#[cfg(test)]
mod golden_tests;
pub mod kernels;
mod key_ranges;
mod like_pattern;
mod row_set;
#[cfg(test)]
mod test_columns;
mod text_condition;
mod value_kind;

pub use block::Block;
pub use block_body::Runs;
pub use block_header::{BlockHeader, Encoding, VectorHeader};
pub use compare::{Comparison, Condition};
pub use decode::{BlockValue, Lanes, LanesBuffer, TextBuffer, TextValues, TextVector, Values};
pub use dictionary::{Dictionary, DictionaryBuilder, hash_text};
pub use encode::{
    Compression, encode_bool, encode_codes, encode_f32, encode_f64, encode_i32, encode_i64, encode_i128, encode_lanes,
    encode_text,
};
pub use error::{Error, Result};
pub use key_ranges::{KeyRanges, PruneResult};
pub use like_pattern::LikePattern;
pub use row_set::RowSet;
pub use text_condition::{TextCondition, TextMatcher};
pub use validity_bitmap::ValidityBitmap;
pub use value_kind::ValueKind;

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
