//! The leading key of a row as one number.

use super::SortKey;
use super::packed::{leading, ordered};
use crate::{Column, Data};

/// Bytes of a string that a number has.
const TEXT_BYTES: usize = size_of::<u128>();

/// A number that is not less than that of a row whose key comes before this one's, whatever columns both are of. Rows whose numbers are equal
/// may have keys that are not.
pub(super) fn prefix(key: &SortKey, column: &Column, row: usize) -> u128 {
    if !column.is_valid(row) {
        return if key.nulls_first { 0 } else { u128::MAX };
    }
    let value = match &column.data {
        Data::Bools(bits) => u128::from(bits.get(row)),
        Data::Ints { values, .. } => from_signed(values[row].into()),
        Data::Wide(values) => from_signed(values[row]),
        Data::Floats(values) => u128::from(ordered(values[row])),
        // That they are not compared is told by whoever compares the rows.
        Data::Opaque(_) => 0,
        Data::Texts(texts) => leading(texts.value(row), 0, TEXT_BYTES),
        Data::Codes { codes, strings } => {
            let code = codes[row] as usize;
            // That there is no such string is told by whoever compares the rows.
            if code < strings.len() { leading(strings.values().value(code), 0, TEXT_BYTES) } else { 0 }
        }
    };
    if key.is_descending { !value } else { value }
}

fn from_signed(value: i128) -> u128 {
    value.cast_unsigned() ^ 1 << 127
}
