//! Decodes delta-encoded numbers (["Delta Encoding
//! (DELTA_BINARY_PACKED)"](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).

use super::Malformed;
use super::unpack::unpack;
use super::varint::{varint, zigzag};

const CUT_SHORT: Malformed = Malformed("deltas that end early");

/// Decodes exactly `lanes.len()` numbers.
pub(super) fn decode(bytes: &[u8], lanes: &mut [i64]) -> Result<(), Malformed> {
    let (block_values, rest) = varint(bytes).ok_or(CUT_SHORT)?;
    let (pieces, rest) = varint(rest).ok_or(CUT_SHORT)?;
    let (count, rest) = varint(rest).ok_or(CUT_SHORT)?;
    let (first, rest) = zigzag(rest).ok_or(CUT_SHORT)?;
    if count != lanes.len() as u64 {
        return Err(Malformed("a number of deltas that differs from the number of rows"));
    }
    // As the format demands; no writer uses larger blocks.
    let is_sound = block_values.is_multiple_of(128) && block_values <= 1 << 20 && (1..=1 << 10).contains(&pieces);
    if !is_sound || !(block_values / pieces).is_multiple_of(32) || block_values / pieces == 0 {
        return Err(Malformed("delta blocks of an invalid size"));
    }
    let piece_values = usize::try_from(block_values / pieces).expect("block sizes were checked above");
    let pieces = usize::try_from(pieces).expect("block sizes were checked above");
    let Some((lane, mut left)) = lanes.split_first_mut() else { return Ok(()) };
    *lane = first;
    let (mut value, mut bytes) = (first, rest);
    while !left.is_empty() {
        let (least, rest) = zigzag(bytes).ok_or(CUT_SHORT)?;
        let (widths, rest) = rest.split_at_checked(pieces).ok_or(CUT_SHORT)?;
        bytes = rest;
        for width in widths {
            if left.is_empty() {
                break;
            }
            if 64 < *width {
                return Err(Malformed("deltas of more than 64 bits"));
            }
            let packed_bytes = piece_values * usize::from(*width) / 8;
            let (steps, behind) = left.split_at_mut(piece_values.min(left.len()));
            if bytes.len() < (steps.len() * usize::from(*width)).div_ceil(8) {
                return Err(CUT_SHORT);
            }
            // Bytes behind the deltas are passed along, because a stride at the very end of its input is copied first.
            unpack(bytes, *width, steps);
            for step in steps {
                value = value.wrapping_add(least).wrapping_add(*step);
                *step = value;
            }
            bytes = bytes.get(packed_bytes..).unwrap_or_default();
            left = behind;
        }
    }
    Ok(())
}
