//! Writing blocks: `keys.rs` brings values into one form, `statistics.rs` looks at them, `choose.rs` decides, `write.rs` writes.

mod choose;
mod float;
mod keys;
mod statistics;
mod text;
mod wide;
mod write;

use bytes::Bytes;
pub use text::Compression;

use crate::encode::choose::{Plan, choose};
use crate::encode::keys::Keys;
use crate::encode::statistics::Statistics;
use crate::encode::write::write;
use crate::{BLOCK_ROWS, Bitmap, Error, Kind, Result};

/// A block of 64-bit integers: timestamps and decimals of up to 18 digits too.
pub fn encode_i64(values: &[i64], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(encode_keys(Kind::Int64, 0, &Keys::new(values, validity)))
}

/// A block of numbers that are 64-bit lanes already; of truth values, codes and 32-bit integers each must be one.
pub fn encode_lanes(kind: Kind, values: &[i64], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(encode_keys(kind, 0, &Keys::new(values, validity)))
}

/// A block of 32-bit integers: dates too.
pub fn encode_i32(values: &[i32], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    encode_narrow(Kind::Int32, values, validity)
}

/// A block of truth values.
pub fn encode_bool(values: &[bool], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    encode_narrow(Kind::Boolean, values, validity)
}

/// A block of positions in a dictionary.
pub fn encode_codes(values: &[u32], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    encode_narrow(Kind::Code, values, validity)
}

/// A block of 128-bit integers: decimals of more than 18 digits.
pub fn encode_i128(values: &[i128], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(wide::encode(values, validity))
}

/// A block of doubles. A NaN comes back as the only one there is; -0 stays -0.
pub fn encode_f64(values: &[f64], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(float::encode_f64(values, validity))
}

/// A block of singles.
pub fn encode_f32(values: &[f32], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    Ok(float::encode_f32(values, validity))
}

/// A block of strings.
pub fn encode_text(values: &[&[u8]], validity: Option<Bitmap<'_>>, compression: Compression) -> Result<Bytes> {
    check(values.len(), validity)?;
    text::encode(values, validity, compression)
}

fn encode_narrow<T: Copy + Into<i64>>(kind: Kind, values: &[T], validity: Option<Bitmap<'_>>) -> Result<Bytes> {
    check(values.len(), validity)?;
    let values: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
    Ok(encode_keys(kind, 0, &Keys::new(&values, validity)))
}

fn check(rows: usize, validity: Option<Bitmap<'_>>) -> Result<()> {
    if BLOCK_ROWS < rows {
        return Err(Error::TooLarge("rows"));
    }
    if validity.is_some_and(|bitmap| !bitmap.covers(rows)) {
        return Err(Error::TooLarge("rows for its bitmap"));
    }
    Ok(())
}

/// A block of whatever has 64-bit keys.
fn encode_keys(kind: Kind, offset: i128, keys: &Keys<'_>) -> Bytes {
    let statistics = Statistics::of(keys);
    write(kind, offset, keys, &statistics, choose(&statistics))
}

/// The same, for the values of runs: never runs themselves.
fn encode_run_values(kind: Kind, offset: i128, keys: &Keys<'_>) -> Bytes {
    if kind.is_float() {
        return float::encode(kind, keys, false);
    }
    let statistics = Statistics::of(keys);
    let plan = match choose(&statistics) {
        Plan::Runs => statistics.packed().unwrap_or(Plan::Plain),
        plan => plan,
    };
    write(kind, offset, keys, &statistics, plan)
}

#[cfg(test)]
mod tests;
