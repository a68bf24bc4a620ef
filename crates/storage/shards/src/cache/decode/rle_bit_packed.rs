//! Decodes Parquet's mix of runs and bit-packed numbers, used for levels and dictionary indices (["Run Length Encoding
//! / Bit-Packing Hybrid"](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).

use super::Malformed;
use super::unpack::{Lane, unpack};
use super::varint::varint;

/// Fills `lanes` with numbers of `width` bits, 32 at most.
pub(super) fn decode<T: Lane>(mut bytes: &[u8], width: u8, lanes: &mut [T]) -> Result<(), Malformed> {
    if 32 < width {
        return Err(Malformed("numbers of more than 32 bits"));
    }
    let mut left = lanes;
    while !left.is_empty() {
        let (head, rest) = varint(bytes).ok_or(Malformed("runs that end early"))?;
        let count = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        if head & 1 == 0 {
            let (value, rest) = run_value(rest, width).ok_or(Malformed("a run without its value"))?;
            let count = count.min(left.len());
            if count == 0 {
                return Err(Malformed("a run of length 0"));
            }
            let (run, behind) = left.split_at_mut(count);
            run.fill(T::from_bits(value));
            (left, bytes) = (behind, rest);
        } else {
            // Numbers are packed in groups of eight; the last group may be padded.
            let packed_bytes = count.saturating_mul(width.into());
            let count = count.saturating_mul(8).min(left.len());
            if count == 0 || rest.len() < (count * usize::from(width)).div_ceil(8) {
                return Err(Malformed("packed numbers that end early"));
            }
            let (packed, behind) = left.split_at_mut(count);
            unpack(&rest[..packed_bytes.min(rest.len())], width, packed);
            (left, bytes) = (behind, rest.get(packed_bytes..).unwrap_or_default());
        }
    }
    Ok(())
}

/// Returns length and value of the first run; `None` if the data starts with packed numbers.
pub(super) fn first_run(bytes: &[u8], width: u8) -> Option<(usize, u64)> {
    let (head, rest) = varint(bytes)?;
    let (value, _) = run_value(rest, width)?;
    (head & 1 == 0).then(|| (usize::try_from(head >> 1).unwrap_or(usize::MAX), value))
}

/// Reads the value of a run.
fn run_value(bytes: &[u8], width: u8) -> Option<(u64, &[u8])> {
    let (value, rest) = bytes.split_at_checked(usize::from(width).div_ceil(8))?;
    let value = value.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value, rest))
}
