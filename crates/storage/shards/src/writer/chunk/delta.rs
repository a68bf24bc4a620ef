//! Delta-encodes numbers (["Delta Encoding
//! (DELTA_BINARY_PACKED)"](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).

use super::form::Width;
use super::pack::{STRIDE, pack_stride, varint, width_of};

/// Number of deltas in a block, which share a minimum.
const BLOCK_STEPS: usize = 128;
/// Number of miniblocks of a block, each with its own bit width.
const STRIDES: usize = BLOCK_STEPS / STRIDE;

/// Appends all `lanes`, delta-encoded.
pub(super) fn encode(lanes: &[i64], width: Width, bytes: &mut Vec<u8>) {
    varint(BLOCK_STEPS as u64, bytes);
    varint(STRIDES as u64, bytes);
    varint(lanes.len() as u64, bytes);
    zigzag(lanes.first().map_or(0, |first| width.cut(*first)), bytes);
    let mut steps = [0; BLOCK_STEPS];
    for start in (1..lanes.len()).step_by(BLOCK_STEPS) {
        let end = (start + BLOCK_STEPS).min(lanes.len());
        let count = end - start;
        for (step, pair) in steps.iter_mut().zip(lanes[start - 1..end].windows(2)) {
            *step = width.cut(pair[1].wrapping_sub(pair[0]));
        }
        let least = steps[..count].iter().copied().min().expect("a block has at least one delta");
        zigzag(least, bytes);
        let widths_at = bytes.len();
        bytes.extend([0; STRIDES]);
        for (number, steps) in steps[..count].chunks(STRIDE).enumerate() {
            let mut above = [0; STRIDE];
            for (above, step) in above.iter_mut().zip(steps) {
                *above = width.bits(step.wrapping_sub(least));
            }
            let width = width_of(above.iter().fold(0, |all, above| all | above));
            bytes[widths_at + number] = width;
            pack_stride(&above, width, STRIDE, bytes);
        }
    }
}

/// Appends a zigzag-encoded signed number.
fn zigzag(number: i64, bytes: &mut Vec<u8>) {
    varint(((number << 1) ^ (number >> 63)).cast_unsigned(), bytes);
}
