//! The execution encoding: a block is up to 65,536 rows of one column, packed so that predicates run on it as it lies.
//!
//! Owns the layout of blocks and dictionaries (`docs/blocks.md`), how one is chosen and written (`encode`), read (`decode`) and
//! tested against constants (`compare`), and the loops for several instruction sets (`kernels`). Knows no files, no Arrow, no SQL.
//!
//! Start at `block.rs` for what a block is, `format.rs` for its bytes, `compare/mod.rs` for what the crate exists for.

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

pub use bitmap::Bitmap;
pub use block::Block;
pub use body::Runs;
pub use compare::{Comparison, Condition};
pub use decode::{Lanes, LanesBuffer, TextBuffer, TextValues, Texts, Value, Values};
pub use dictionary::{Dictionary, DictionaryBuilder, hash as hash_text};
pub use encode::{
    Compression, encode_bool, encode_codes, encode_f32, encode_f64, encode_i32, encode_i64, encode_i128, encode_lanes,
    encode_text,
};
pub use error::{Error, Result};
pub use format::{Entry, Head, Scheme};
pub use kind::Kind;
pub use pattern::Pattern;
pub use ranges::{Ranges, Zone};
pub use row_set::RowSet;
pub use text::{Matcher, TextCondition};

/// Rows of one vector: what a kernel works on at once.
pub const VECTOR_ROWS: usize = 1024;
/// Vectors of a full block.
pub const BLOCK_VECTORS: usize = 64;
/// Rows of a full block.
pub const BLOCK_ROWS: usize = VECTOR_ROWS * BLOCK_VECTORS;

/// One bit for each row of a vector, row `r` in bit `r % 64` of word `r / 64`.
pub type Mask = [u64; VECTOR_ROWS / 64];

/// A mask of the first `rows` rows.
pub(crate) fn mask_of(rows: usize) -> Mask {
    std::array::from_fn(|word| match rows.saturating_sub(word * 64) {
        0 => 0,
        some if some < 64 => (1 << some) - 1,
        _ => u64::MAX,
    })
}
