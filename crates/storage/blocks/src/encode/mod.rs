//! Encoding of blocks.
//!
//! In reading order:
//! - `column_keys.rs`: values as 64-bit keys
//! - `key_statistics.rs`: statistics of the keys
//! - `choose_encoding.rs`: choice of the encoding
//! - `block_writer.rs`: writing of the block
//! - `float.rs`, `int128.rs`, `text.rs`: floats, 128-bit integers and strings

mod block_writer;
mod choose_encoding;
mod column_keys;
mod float;
mod int128;
mod key_statistics;
mod text;

use bytes::Bytes;
pub use text::Compression;

use crate::encode::block_writer::write_block;
use crate::encode::choose_encoding::{EncodingPlan, choose_encoding};
use crate::encode::column_keys::Keys;
use crate::encode::key_statistics::KeyStatistics;
use crate::{BLOCK_ROWS, Error, Result, ValidityBitmap, ValueKind};

/// Encodes 64-bit integers, timestamps or decimals of up to 18 digits.
pub fn encode_i64(values: &[i64], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(encode_keys(ValueKind::Int64, 0, &Keys::new(values, validity)))
}

/// Encodes a block of type `kind` from 64-bit integers, which must be in the type's range.
pub fn encode_lanes(kind: ValueKind, values: &[i64], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(encode_keys(kind, 0, &Keys::new(values, validity)))
}

/// Encodes 32-bit integers or dates.
pub fn encode_i32(values: &[i32], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    encode_narrow(ValueKind::Int32, values, validity)
}

/// Encodes booleans.
pub fn encode_bool(values: &[bool], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    encode_narrow(ValueKind::Boolean, values, validity)
}

/// Encodes dictionary indices.
pub fn encode_codes(values: &[u32], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    encode_narrow(ValueKind::Code, values, validity)
}

/// Encodes 128-bit integers: decimals of more than 18 digits.
pub fn encode_i128(values: &[i128], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(int128::encode(values, validity))
}

/// Encodes doubles. All NaNs become one NaN; -0 is preserved.
pub fn encode_f64(values: &[f64], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(float::encode_f64(values, validity))
}

/// Encodes singles.
pub fn encode_f32(values: &[f32], validity: Option<ValidityBitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(float::encode_f32(values, validity))
}

/// Encodes strings.
pub fn encode_text(values: &[&[u8]], validity: Option<ValidityBitmap<'_>>, compression: Compression) -> Result<Bytes> {
    check(values.len(), validity)?;
    text::encode(values, validity, compression)
}

fn encode_narrow<T: Copy + Into<i64>>(
    kind: ValueKind,
    values: &[T],
    validity: Option<ValidityBitmap<'_>>,
) -> Result<Bytes> {
    check(values.len(), validity)?;
    let values: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
    Ok(encode_keys(kind, 0, &Keys::new(&values, validity)))
}

/// Checks the number of rows and the length of the validity bitmap.
fn check(rows: usize, validity: Option<ValidityBitmap<'_>>) -> Result<()> {
    if BLOCK_ROWS < rows {
        return Err(Error::TooLarge("a block has at most 65,536 rows"));
    }
    if validity.is_some_and(|bitmap| !bitmap.has_bits_for(rows)) {
        return Err(Error::TooLarge("the column has more rows than its validity bitmap has bits"));
    }
    Ok(())
}

/// Encodes a block of a type that has 64-bit keys.
fn encode_keys(kind: ValueKind, offset: i128, keys: &Keys<'_>) -> Bytes {
    let statistics = KeyStatistics::from_keys(keys);
    write_block(kind, offset, keys, &statistics, choose_encoding(&statistics))
}

/// Encodes the values of runs, which are never run-length encoded themselves.
fn encode_run_values(kind: ValueKind, offset: i128, keys: &Keys<'_>) -> Bytes {
    if kind.is_float() {
        return float::encode(kind, keys, false);
    }
    let statistics = KeyStatistics::from_keys(keys);
    let plan = match choose_encoding(&statistics) {
        EncodingPlan::Runs => statistics.packed_plan().unwrap_or(EncodingPlan::Plain),
        plan => plan,
    };
    write_block(kind, offset, keys, &statistics, plan)
}

#[cfg(test)]
mod tests;
