//! Normalized keys: the leading sort keys of a row, packed into one number of the same order.

use std::ops::Range;

use arrow::array::{Array, StringViewArray};

use super::SortKey;
use super::ranks::ranks;
use crate::{Column, Data, Error, Result};

/// Bits for keys in a packed number; the others hold the row number.
const KEY_BITS: u32 = 96;
/// Bits for the row number.
pub(super) const ROW_BITS: u32 = u128::BITS - KEY_BITS;

/// Packing of the leading sort keys into a number.
#[derive(Debug)]
pub(super) struct Packed {
    parts: Vec<Part>,
    /// Key bits that no key uses.
    free: u32,
    /// First key that the number does not decide fully; the number of keys if it decides all.
    pub(super) first_open: usize,
}

/// Packing of one key into bits.
#[derive(Debug)]
struct Part {
    key: SortKey,
    form: PartForm,
    /// Largest number of a value; the smallest is 0.
    span: u128,
    has_nulls: bool,
    /// Number of lowest bits that are cut off as they do not fit.
    dropped: u32,
    /// Number of bits that are packed.
    bits: u32,
}

#[derive(Debug)]
enum PartForm {
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

impl Packed {
    pub(super) fn new(keys: &[SortKey], columns: &[Column]) -> Result<Self> {
        let mut packed = Self { parts: Vec::new(), free: KEY_BITS, first_open: keys.len() };
        for (place, key) in keys.iter().enumerate() {
            let column = columns.get(key.column).ok_or(Error::Form("the column of a sort key is missing"))?;
            if matches!(column.data, Data::Opaque(_)) {
                return Err(Error::Form("a sort key of a type without an order"));
            }
            let Some(mut part) = Part::new(*key, column, packed.free) else {
                packed.first_open = place;
                break;
            };
            let is_open = matches!(part.form, PartForm::Texts { .. }) || packed.free < part.bits;
            if is_open && packed.free == 0 {
                packed.first_open = place;
                break;
            }
            part.dropped = part.bits.saturating_sub(packed.free);
            part.bits -= part.dropped;
            packed.free -= part.bits;
            packed.parts.push(part);
            if is_open {
                packed.first_open = place;
                break;
            }
        }
        Ok(packed)
    }

    /// Packs the keys of some rows, with the row number in the lowest bits.
    pub(super) fn numbers(&self, columns: &[Column], rows: Range<usize>) -> Vec<u128> {
        let mut numbers = vec![0_u128; rows.len()];
        for part in &self.parts {
            part.append(&columns[part.key.column], rows.clone(), &mut numbers);
        }
        for (number, row) in numbers.iter_mut().zip(rows) {
            *number = *number << self.free << ROW_BITS | row as u128;
        }
        numbers
    }
}

impl Part {
    /// Creates the packing of a key; `None` if its values have no numbers of 128 bits, or not a single byte of a string
    /// fits in `free` bits.
    fn new(key: SortKey, column: &Column, free: u32) -> Option<Self> {
        let rows = column.rows();
        let has_nulls = column.validity.as_ref().is_some_and(|valid| valid.count() < rows);
        let (form, span) = match &column.data {
            Data::Ints { values, .. } => {
                let (min, max) = bounds(column, values.iter().copied())?;
                (PartForm::Ints(min), (i128::from(max) - i128::from(min)).unsigned_abs())
            }
            Data::Wide(values) => {
                let (min, max) = bounds(column, values.iter().copied())?;
                (PartForm::Wide(min), max.wrapping_sub(min).cast_unsigned())
            }
            Data::Floats(values) => {
                let (min, max) = bounds(column, values.iter().map(|value| ordered(*value)))?;
                (PartForm::Floats(min), u128::from(max - min))
            }
            Data::Bools(_) => (PartForm::Bools, 1),
            Data::Codes { codes, strings } => {
                let used = (0..rows).filter(|row| column.is_valid(*row)).map(|row| codes[row]);
                let (ranks, last) = ranks(strings, used);
                (PartForm::Ranks(ranks), last.into())
            }
            Data::Texts(texts) => {
                let start = common_prefix(column, texts);
                let bytes = (free.saturating_sub(u32::from(has_nulls)) / 8) as usize;
                if bytes == 0 {
                    return None;
                }
                (PartForm::Texts { start, bytes }, (1 << (8 * bytes)) - 1)
            }
            Data::Opaque(_) => return None,
        };
        // One more number stands for NULL.
        let last = span.checked_add(u128::from(has_nulls))?;
        Some(Self { key, form, span, has_nulls, dropped: 0, bits: u128::BITS - last.leading_zeros() })
    }

    /// Appends the bits of this key to the numbers of some rows.
    fn append(&self, column: &Column, rows: Range<usize>, numbers: &mut [u128]) {
        let start = rows.start;
        match (&self.form, &column.data) {
            (PartForm::Ints(min), Data::Ints { values, .. }) => {
                let of = |value: &i64| u128::from(value.wrapping_sub(*min).cast_unsigned());
                self.append_each(column, start, values[rows].iter().map(of), numbers);
            }
            (PartForm::Wide(min), Data::Wide(values)) => {
                let of = |value: &i128| value.wrapping_sub(*min).cast_unsigned();
                self.append_each(column, start, values[rows].iter().map(of), numbers);
            }
            (PartForm::Floats(min), Data::Floats(values)) => {
                let of = |value: &f64| u128::from(ordered(*value).wrapping_sub(*min));
                self.append_each(column, start, values[rows].iter().map(of), numbers);
            }
            (PartForm::Bools, Data::Bools(bits)) => {
                self.append_each(column, start, rows.map(|row| u128::from(bits.get(row))), numbers);
            }
            (PartForm::Ranks(ranks), Data::Codes { codes, .. }) => {
                let of = |code: &u32| u128::from(ranks.get(*code as usize).copied().unwrap_or(0));
                self.append_each(column, start, codes[rows].iter().map(of), numbers);
            }
            (PartForm::Texts { start: from, bytes }, Data::Texts(texts)) => {
                let of = |row: usize| if column.is_valid(row) { leading(texts.value(row), *from, *bytes) } else { 0 };
                self.append_each(column, start, rows.map(of), numbers);
            }
            _ => unreachable!("the packing was created for this column"),
        }
    }

    fn append_each(&self, column: &Column, start: usize, values: impl Iterator<Item = u128>, numbers: &mut [u128]) {
        let placed = |value: u128| if self.key.is_descending { self.span.wrapping_sub(value) } else { value };
        if !self.has_nulls {
            for (number, value) in numbers.iter_mut().zip(values) {
                *number = *number << self.bits | placed(value) >> self.dropped;
            }
            return;
        }
        let null = if self.key.nulls_first { 0 } else { self.span + 1 };
        let shift = u128::from(self.key.nulls_first);
        for (row, (number, value)) in numbers.iter_mut().zip(values).enumerate() {
            let value = if column.is_valid(start + row) { placed(value) + shift } else { null };
            *number = *number << self.bits | value >> self.dropped;
        }
    }
}

/// Returns the smallest and the largest of the non-NULL values; a pair of equal values if all are NULL.
fn bounds<T: Copy + Ord + Default>(column: &Column, values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let mut found: Option<(T, T)> = None;
    for (row, value) in values.enumerate() {
        if column.is_valid(row) {
            found = Some(found.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
        }
    }
    Some(found.unwrap_or_default())
}

/// Maps a float to a number of PostgreSQL's order: -0 equals 0, NaN equals NaN and is greater than all other values.
pub(super) fn ordered(value: f64) -> u64 {
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
pub(super) fn leading(text: &str, from: usize, bytes: usize) -> u128 {
    let text = text.as_bytes().get(from..).unwrap_or_default();
    let mut padded = [0; 16];
    let count = text.len().min(bytes);
    padded[..count].copy_from_slice(&text[..count]);
    u128::from_be_bytes(padded) >> (128 - 8 * bytes)
}
