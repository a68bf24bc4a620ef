//! Normalized keys: the leading sort keys of a row, packed into one number of the same order.

use std::ops::Range;

use arrow::array::{Array, StringViewArray};

use super::SortKey;
use super::dictionary_ranks::rank_codes;
use crate::{Column, ColumnData, Error, Result};

/// Bits for keys in a packed number; the others hold the row number.
const KEY_BITS: u32 = 96;
/// Bits for the row number.
pub(super) const ROW_BITS: u32 = u128::BITS - KEY_BITS;

/// Packing of the leading sort keys into a number.
#[derive(Debug)]
pub(super) struct PackedKeys {
    parts: Vec<PackedKey>,
    /// Key bits that no key uses.
    free_bits: u32,
    /// First key that the number does not decide fully; the number of keys if it decides all.
    pub(super) first_undecided_key: usize,
}

/// Packing of one key into bits.
#[derive(Debug)]
struct PackedKey {
    key: SortKey,
    form: KeyPacking,
    /// Largest number of a value; the smallest is 0.
    max_number: u128,
    has_nulls: bool,
    /// Number of lowest bits that are cut off as they do not fit.
    dropped_bits: u32,
    /// Number of bits that are packed.
    bits: u32,
}

#[derive(Debug)]
enum KeyPacking {
    /// Distance from this minimum.
    Ints(i64),
    /// Distance from this minimum.
    Wide(i128),
    /// Distance from this minimum of the values' order-preserving bits.
    Floats(u64),
    Bools,
    /// Rank of the string, by code.
    Ranks(Vec<u32>),
    /// `bytes` bytes of the string, from byte `start` on: the prefix common to all strings is skipped.
    Texts {
        start: usize,
        bytes: usize,
    },
}

impl PackedKeys {
    pub(super) fn new(keys: &[SortKey], columns: &[Column]) -> Result<Self> {
        let mut packed = Self { parts: Vec::new(), free_bits: KEY_BITS, first_undecided_key: keys.len() };
        for (place, key) in keys.iter().enumerate() {
            let column = columns.get(key.column).ok_or(Error::Internal("the column of a sort key is missing"))?;
            if matches!(column.data, ColumnData::Opaque(_)) {
                return Err(Error::Internal("the type of a sort key's column has no order"));
            }
            let Some(mut part) = PackedKey::new(*key, column, packed.free_bits) else {
                packed.first_undecided_key = place;
                break;
            };
            let is_open = matches!(part.form, KeyPacking::Texts { .. }) || packed.free_bits < part.bits;
            if is_open && packed.free_bits == 0 {
                packed.first_undecided_key = place;
                break;
            }
            part.dropped_bits = part.bits.saturating_sub(packed.free_bits);
            part.bits -= part.dropped_bits;
            packed.free_bits -= part.bits;
            packed.parts.push(part);
            if is_open {
                packed.first_undecided_key = place;
                break;
            }
        }
        Ok(packed)
    }

    /// Packs the keys of some rows, with the row number in the lowest bits.
    pub(super) fn pack(&self, columns: &[Column], rows: Range<usize>) -> Vec<u128> {
        let mut numbers = vec![0_u128; rows.len()];
        for part in &self.parts {
            part.append(&columns[part.key.column], rows.clone(), &mut numbers);
        }
        for (number, row) in numbers.iter_mut().zip(rows) {
            *number = *number << self.free_bits << ROW_BITS | row as u128;
        }
        numbers
    }
}

impl PackedKey {
    /// Creates the packing of a key; `None` if its values have no numbers of 128 bits, or not a single byte of a string
    /// fits in `free` bits.
    fn new(key: SortKey, column: &Column, free: u32) -> Option<Self> {
        let rows = column.rows();
        let has_nulls = column.validity.as_ref().is_some_and(|valid| valid.count_ones() < rows);
        let (form, span) = match &column.data {
            ColumnData::Ints { values, .. } => {
                let (min, max) = min_max(column, values.iter().copied())?;
                (KeyPacking::Ints(min), (i128::from(max) - i128::from(min)).unsigned_abs())
            }
            ColumnData::WideInts(values) => {
                let (min, max) = min_max(column, values.iter().copied())?;
                (KeyPacking::Wide(min), max.wrapping_sub(min).cast_unsigned())
            }
            ColumnData::Floats(values) => {
                let (min, max) = min_max(column, values.iter().map(|value| order_preserving_bits(*value)))?;
                (KeyPacking::Floats(min), u128::from(max - min))
            }
            ColumnData::Bools(_) => (KeyPacking::Bools, 1),
            ColumnData::Dictionary { indices: codes, dictionary: strings } => {
                let used = (0..rows).filter(|row| column.is_valid(*row)).map(|row| codes[row]);
                let (ranks, last) = rank_codes(strings, used);
                (KeyPacking::Ranks(ranks), last.into())
            }
            ColumnData::Texts(texts) => {
                let start = common_prefix(column, texts);
                let bytes = (free.saturating_sub(u32::from(has_nulls)) / 8) as usize;
                if bytes == 0 {
                    return None;
                }
                (KeyPacking::Texts { start, bytes }, (1 << (8 * bytes)) - 1)
            }
            ColumnData::Opaque(_) => return None,
        };
        // One more number stands for NULL.
        let last = span.checked_add(u128::from(has_nulls))?;
        Some(Self { key, form, max_number: span, has_nulls, dropped_bits: 0, bits: u128::BITS - last.leading_zeros() })
    }

    /// Appends the bits of this key to the numbers of some rows.
    fn append(&self, column: &Column, rows: Range<usize>, numbers: &mut [u128]) {
        let start = rows.start;
        match (&self.form, &column.data) {
            (KeyPacking::Ints(min), ColumnData::Ints { values, .. }) => {
                let of = |value: &i64| u128::from(value.wrapping_sub(*min).cast_unsigned());
                self.append_each(column, start, values[rows].iter().map(of), numbers);
            }
            (KeyPacking::Wide(min), ColumnData::WideInts(values)) => {
                let of = |value: &i128| value.wrapping_sub(*min).cast_unsigned();
                self.append_each(column, start, values[rows].iter().map(of), numbers);
            }
            (KeyPacking::Floats(min), ColumnData::Floats(values)) => {
                let of = |value: &f64| u128::from(order_preserving_bits(*value).wrapping_sub(*min));
                self.append_each(column, start, values[rows].iter().map(of), numbers);
            }
            (KeyPacking::Bools, ColumnData::Bools(bits)) => {
                self.append_each(column, start, rows.map(|row| u128::from(bits.get(row))), numbers);
            }
            (KeyPacking::Ranks(ranks), ColumnData::Dictionary { indices: codes, .. }) => {
                let of = |code: &u32| u128::from(ranks.get(*code as usize).copied().unwrap_or(0));
                self.append_each(column, start, codes[rows].iter().map(of), numbers);
            }
            (KeyPacking::Texts { start: from, bytes }, ColumnData::Texts(texts)) => {
                let of =
                    |row: usize| if column.is_valid(row) { leading_bytes(texts.value(row), *from, *bytes) } else { 0 };
                self.append_each(column, start, rows.map(of), numbers);
            }
            _ => unreachable!("the packing was created for this column"),
        }
    }

    fn append_each(&self, column: &Column, start: usize, values: impl Iterator<Item = u128>, numbers: &mut [u128]) {
        let placed = |value: u128| if self.key.is_descending { self.max_number.wrapping_sub(value) } else { value };
        if !self.has_nulls {
            for (number, value) in numbers.iter_mut().zip(values) {
                *number = *number << self.bits | placed(value) >> self.dropped_bits;
            }
            return;
        }
        let null = if self.key.nulls_first { 0 } else { self.max_number + 1 };
        let shift = u128::from(self.key.nulls_first);
        for (row, (number, value)) in numbers.iter_mut().zip(values).enumerate() {
            let value = if column.is_valid(start + row) { placed(value) + shift } else { null };
            *number = *number << self.bits | value >> self.dropped_bits;
        }
    }
}

/// Returns the smallest and the largest of the non-NULL values; a pair of equal values if all are NULL.
fn min_max<T: Copy + Ord + Default>(column: &Column, values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let mut found: Option<(T, T)> = None;
    for (row, value) in values.enumerate() {
        if column.is_valid(row) {
            found = Some(found.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
        }
    }
    Some(found.unwrap_or_default())
}

/// Maps a float to a number of PostgreSQL's order: -0 equals 0, NaN equals NaN and is greater than all other values.
pub(super) fn order_preserving_bits(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// Returns the length in bytes of the prefix that all non-NULL strings have in common.
fn common_prefix(column: &Column, texts: &StringViewArray) -> usize {
    let mut valid = (0..texts.len()).filter(|row| column.is_valid(*row)).map(|row| texts.value(row).as_bytes());
    let Some(first) = valid.next() else { return 0 };
    let mut common = first.len();
    for text in valid {
        common = common.min(text.len());
        if text[..common] != first[..common] {
            common = first.iter().zip(text).take_while(|(x, y)| x == y).count();
        }
        if common == 0 {
            break;
        }
    }
    common
}

/// Returns `bytes` bytes of a string from byte `from` on, as a big-endian number; zeros after the end of the string.
pub(super) fn leading_bytes(text: &str, from: usize, bytes: usize) -> u128 {
    let text = text.as_bytes().get(from..).unwrap_or_default();
    let mut padded = [0; 16];
    let count = text.len().min(bytes);
    padded[..count].copy_from_slice(&text[..count]);
    u128::from_be_bytes(padded) >> (128 - 8 * bytes)
}
