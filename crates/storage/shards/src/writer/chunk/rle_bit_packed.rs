//! Encodes levels and dictionary indices as Parquet's mix of runs and bit-packed numbers (["Run Length Encoding /
//! Bit-Packing Hybrid"](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).

use arrow::array::{Array, BooleanBufferBuilder};

use super::bit_packing::{append_varint, bit_width, pack};

/// Number of equal indices from which on they become a run; shorter runs are bit-packed with their neighbours.
const RUN_MIN: usize = 64;

/// Appends dictionary indices, preceded by their bit width.
pub(super) fn append_codes(codes: &[u64], entries: usize, bytes: &mut Vec<u8>) {
    let width = bit_width(entries.saturating_sub(1) as u64);
    bytes.push(width);
    // Indices from `packed` on are not written yet.
    let (mut packed, mut next) = (0, 0);
    while next < codes.len() {
        let length = codes[next..].iter().take_while(|code| **code == codes[next]).count();
        // Bit-packed numbers come in groups of eight.
        let fill = (next - packed).next_multiple_of(8) - (next - packed);
        if fill + RUN_MIN <= length {
            append_packed(&codes[packed..next + fill], width, bytes);
            append_run(codes[next], length - fill, width, bytes);
            packed = next + length;
        }
        next += length;
    }
    append_packed(&codes[packed..], width, bytes);
}

/// Appends the definition levels of the rows of `parts`, preceded by their encoded length.
pub(super) fn append_levels<'a>(parts: impl Iterator<Item = &'a dyn Array> + Clone, bytes: &mut Vec<u8>) {
    let length_at = bytes.len();
    bytes.extend([0; 4]);
    let rows: usize = parts.clone().map(Array::len).sum();
    let nulls: usize = parts.clone().map(Array::null_count).sum();
    if nulls == 0 || nulls == rows {
        append_run(u64::from(nulls == 0), rows, 1, bytes);
    } else {
        let mut levels = BooleanBufferBuilder::new(rows);
        for part in parts {
            match part.nulls() {
                Some(nulls) => levels.append_buffer(nulls.inner()),
                None => levels.append_n(part.len(), true),
            }
        }
        let groups = rows.div_ceil(8);
        append_varint((groups as u64) << 1 | 1, bytes);
        bytes.extend_from_slice(&levels.as_slice()[..groups]);
    }
    let length = u32::try_from(bytes.len() - length_at - 4).expect("a page has fewer rows");
    bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
}

fn append_packed(codes: &[u64], width: u8, bytes: &mut Vec<u8>) {
    if !codes.is_empty() {
        append_varint((codes.len().div_ceil(8) as u64) << 1 | 1, bytes);
        pack(codes, width, bytes);
    }
}

fn append_run(value: u64, count: usize, width: u8, bytes: &mut Vec<u8>) {
    append_varint((count as u64) << 1, bytes);
    bytes.extend_from_slice(&value.to_le_bytes()[..usize::from(width).div_ceil(8)]);
}
