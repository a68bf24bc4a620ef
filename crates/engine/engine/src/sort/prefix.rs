//! Prefix of a row's leading sort key as one number, which decides most comparisons of a merge.

use super::SortKey;
use super::packed::{leading, ordered};
use crate::{Column, Data};

/// Bytes of a string in a prefix.
const TEXT_BYTES: usize = size_of::<u128>();

/// Returns a number whose order agrees with that of the leading key, also across columns: if a key sorts before
/// another, its number is not greater. Different keys may have equal numbers.
pub(super) fn prefix(key: &SortKey, column: &Column, row: usize) -> u128 {
    if !column.is_valid(row) {
        return if key.nulls_first { 0 } else { u128::MAX };
    }
    let value = match &column.data {
        Data::Bools(bits) => u128::from(bits.get(row)),
        Data::Ints { values, .. } => from_signed(values[row].into()),
        Data::Wide(values) => from_signed(values[row]),
        Data::Floats(values) => u128::from(ordered(values[row])),
        // Comparing the rows reports the error.
        Data::Opaque(_) => 0,
        Data::Texts(texts) => leading(texts.value(row), 0, TEXT_BYTES),
        Data::Codes { codes, strings } => {
            let code = codes[row] as usize;
            // A code beyond the dictionary: comparing the rows reports the error.
            if code < strings.len() { leading(strings.values().value(code), 0, TEXT_BYTES) } else { 0 }
        }
    };
    if key.is_descending { !value } else { value }
}

fn from_signed(value: i128) -> u128 {
    value.cast_unsigned() ^ 1 << 127
}
