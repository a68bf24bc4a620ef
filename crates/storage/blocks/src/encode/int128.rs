//! Encoding of 128-bit integers: as offsets from the minimum if these fit 63 bits, else plain.

use bytes::Bytes;

use crate::encode::block_writer::{BodyWriter, bitmap_bytes, empty_header};
use crate::encode::column_keys::Keys;
use crate::encode::encode_keys;
use crate::{Encoding, Mask, VECTOR_ROWS, ValidityBitmap, ValueKind, VectorHeader, first_rows_mask};

pub(crate) fn encode(values: &[i128], validity: Option<ValidityBitmap<'_>>) -> Bytes {
    let valid = |row: usize| validity.is_none_or(|bitmap| bitmap.is_valid(row));
    let non_null = || values.iter().enumerate().filter(|(row, _)| valid(*row)).map(|(_, value)| *value);
    let (min, max) = non_null()
        .fold(None, |bounds: Option<(i128, i128)>, value| {
            Some(bounds.map_or((value, value), |(min, max)| (min.min(value), max.max(value))))
        })
        .unwrap_or_default();
    if max.checked_sub(min).is_none_or(|span| i128::from(i64::MAX) < span) {
        return encode_plain(values, validity, (min, max));
    }
    let distance = |(row, value): (usize, &i128)| if valid(row) { (*value - min) as i64 } else { 0 };
    let keys: Vec<i64> = values.iter().enumerate().map(distance).collect();
    encode_keys(ValueKind::Int128, min, &Keys::new(&keys, validity))
}

fn encode_plain(values: &[i128], validity: Option<ValidityBitmap<'_>>, (min, max): (i128, i128)) -> Bytes {
    let masks: Vec<Mask> = values
        .chunks(VECTOR_ROWS)
        .enumerate()
        .map(|(vector, values)| {
            validity
                .map_or_else(|| first_rows_mask(values.len()), |bitmap| bitmap.mask(vector * VECTOR_ROWS, values.len()))
        })
        .collect();
    let mut nulls = 0;
    let entries = values.chunks(VECTOR_ROWS).zip(&masks).map(|(values, mask)| {
        let non_null = values.iter().enumerate().filter(|(row, _)| mask[row / 64] >> (row % 64) & 1 == 1);
        let keys = non_null.map(|(_, value)| upper_half_key(*value));
        let (mut entry, mut valid) = (VectorHeader { min: i64::MAX, max: i64::MIN, ..VectorHeader::default() }, 0);
        for key in keys {
            (entry.min, entry.max) = (entry.min.min(key), entry.max.max(key));
            valid += 1;
        }
        entry.null_count = (values.len() - valid) as u16;
        nulls += values.len() - valid;
        if valid == 0 { VectorHeader { null_count: entry.null_count, ..VectorHeader::default() } } else { entry }
    });
    let entries = entries.collect();
    let mut body = BodyWriter::new(values.len(), values.len() * 17);
    let mut header = empty_header(ValueKind::Int128, 0, values.len(), nulls);
    (header.encoding, header.lane_bits, header.vector_headers) = (Encoding::PlainWide, 64, entries);
    (header.min, header.max) = (min, max);
    header.has_validity_bitmap = nulls != 0;
    if header.has_validity_bitmap {
        body.append_section(&bitmap_bytes(&masks));
    }
    body.append_section(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
    body.finish(header)
}

/// Returns the key that bounds vectors of plain 128-bit integers: the upper half.
pub(crate) fn upper_half_key(value: i128) -> i64 {
    (value >> 64) as i64
}
