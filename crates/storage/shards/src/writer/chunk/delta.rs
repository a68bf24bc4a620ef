//! Delta-encodes numbers (["Delta Encoding
//! (DELTA_BINARY_PACKED)"](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).

use super::bit_packing::{VALUES_PER_PASS, append_varint, bit_width, pack_stride};
use super::supported_columns::NumberWidth;

/// Number of deltas in a block, which share a minimum.
const BLOCK_DELTAS: usize = 128;
/// Number of miniblocks of a block, each with its own bit width.
const MINIBLOCKS: usize = BLOCK_DELTAS / VALUES_PER_PASS;

/// Appends all `lanes`, delta-encoded.
pub(super) fn encode(lanes: &[i64], width: NumberWidth, bytes: &mut Vec<u8>) {
    append_varint(BLOCK_DELTAS as u64, bytes);
    append_varint(MINIBLOCKS as u64, bytes);
    append_varint(lanes.len() as u64, bytes);
    append_zigzag(lanes.first().map_or(0, |first| width.truncate(*first)), bytes);
    let mut steps = [0; BLOCK_DELTAS];
    for start in (1..lanes.len()).step_by(BLOCK_DELTAS) {
        let end = (start + BLOCK_DELTAS).min(lanes.len());
        let count = end - start;
        for (step, pair) in steps.iter_mut().zip(lanes[start - 1..end].windows(2)) {
            *step = width.truncate(pair[1].wrapping_sub(pair[0]));
        }
        let least = steps[..count].iter().copied().min().expect("a block has at least one delta");
        append_zigzag(least, bytes);
        let widths_at = bytes.len();
        bytes.extend([0; MINIBLOCKS]);
        for (number, steps) in steps[..count].chunks(VALUES_PER_PASS).enumerate() {
            let mut above = [0; VALUES_PER_PASS];
            for (above, step) in above.iter_mut().zip(steps) {
                *above = width.bits(step.wrapping_sub(least));
            }
            let width = bit_width(above.iter().fold(0, |all, above| all | above));
            bytes[widths_at + number] = width;
            pack_stride(&above, width, VALUES_PER_PASS, bytes);
        }
    }
}

/// Appends a zigzag-encoded signed number.
fn append_zigzag(number: i64, bytes: &mut Vec<u8>) {
    append_varint(((number << 1) ^ (number >> 63)).cast_unsigned(), bytes);
}
