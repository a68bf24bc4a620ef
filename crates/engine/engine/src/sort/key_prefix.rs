//! Prefix of a row's leading sort key as one number, which decides most comparisons of a merge.

use super::SortKey;
use super::packed_keys::{leading_bytes, order_preserving_bits};
use crate::{Column, ColumnData};

/// Bytes of a string in a prefix.
const TEXT_BYTES: usize = size_of::<u128>();

/// Returns a number whose order agrees with that of the leading key, also across columns: if a key sorts before
/// another, its number is not greater. Different keys may have equal numbers.
pub(super) fn key_prefix(key: &SortKey, column: &Column, row: usize) -> u128 {
    if !column.is_valid(row) {
        return if key.nulls_first { 0 } else { u128::MAX };
    }
    let value = match &column.data {
        ColumnData::Bools(bits) => u128::from(bits.get(row)),
        ColumnData::Ints { values, .. } => from_signed(values[row].into()),
        ColumnData::WideInts(values) => from_signed(values[row]),
        ColumnData::Floats(values) => u128::from(order_preserving_bits(values[row])),
        // Comparing the rows reports the error.
        ColumnData::Opaque(_) => 0,
        ColumnData::Texts(texts) => leading_bytes(texts.value(row), 0, TEXT_BYTES),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            let code = codes[row] as usize;
            // A code beyond the dictionary: comparing the rows reports the error.
            if code < strings.len() { leading_bytes(strings.values().value(code), 0, TEXT_BYTES) } else { 0 }
        }
    };
    if key.is_descending { !value } else { value }
}

fn from_signed(value: i128) -> u128 {
    value.cast_unsigned() ^ 1 << 127
}
