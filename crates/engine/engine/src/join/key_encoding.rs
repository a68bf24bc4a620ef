//! Encoding of one key column as small integer codes that are equal exactly if the values are equal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::Array;

use super::NO_KEY_CODE;
use super::pair_interner::PairInterner;
use crate::{
    Bitmap, Column, ColumnData, Dictionary, Error, NONE, PhysicalType, Result, STOP_CHECK_ROWS, StringInterner,
    check_stopped,
};

/// Marks a dictionary entry whose number has not been looked up yet.
const NOT_LOOKED_UP: u32 = NONE - 1;

/// Approximate number of dictionary entries cached before the cache is cleared.
const CACHED_ENTRIES_MAX: usize = 1 << 22;

/// Mapping of a key column's values to codes from 0 to `size() - 1`.
#[derive(Debug)]
pub(super) struct KeyEncoding {
    form: PhysicalType,
    mapping: CodeMapping,
    /// Whether code 0 is reserved for NULL.
    has_null: bool,
}

/// Kind of mapping from values to codes.
#[derive(Debug)]
enum CodeMapping {
    /// Distance of a value from the least one. Booleans are 0 and 1; floats are mapped to integers of the same order.
    Range { least: i64, size: u64 },
    /// Numbers of distinct integers that do not fit in 64 bits, or whose range is too large for codes.
    InternedInts(PairInterner),
    /// Numbers of distinct strings.
    InternedStrings(StringInterner),
}

/// Cache of dictionary lookups in the probe side's batches, for one key.
#[derive(Debug, Default)]
pub(super) struct DictionaryLookupCache {
    /// Dense number of each dictionary entry, by the dictionary's id.
    numbers: HashMap<u64, Vec<u32>>,
    /// Count of cached entries.
    cached_entries: usize,
}

impl KeyEncoding {
    /// Builds the encoding from the build side's values. Also returns the rows' numbers if building the encoding
    /// computed them.
    pub(super) fn from_build_column(
        column: &Column,
        nulls_are_equal: bool,
        stop: &AtomicBool,
    ) -> Result<(Self, Option<Vec<u32>>)> {
        let valid = column.validity.as_deref();
        let has_null = nulls_are_equal && valid.is_some_and(|bits| bits.count_ones() < bits.rows());
        let (domain, numbers) = match &column.data {
            ColumnData::Bools(_) => (CodeMapping::Range { least: 0, size: 2 }, None),
            ColumnData::Ints { values, .. } => choose_int_mapping(values, valid, stop, |value| value)?,
            ColumnData::Floats(values) => choose_int_mapping(values, valid, stop, to_ordered_bits)?,
            ColumnData::WideInts(values) => choose_wide_mapping(values, valid, stop)?,
            ColumnData::Dictionary { indices: codes, dictionary: strings } => {
                let mut numbers = StringInterner::default();
                let mut number_of = vec![NOT_LOOKED_UP; strings.len()];
                let of_rows = intern_rows(codes, valid, stop, |code| {
                    let number = number_of
                        .get_mut(code as usize)
                        .ok_or(Error::Internal("a dictionary index of a join key is out of range"))?;
                    if *number == NOT_LOOKED_UP {
                        *number = numbers.intern(strings.get(code))?;
                    }
                    Ok(*number)
                })?;
                (CodeMapping::InternedStrings(numbers), Some(of_rows))
            }
            ColumnData::Texts(texts) => {
                let mut numbers = StringInterner::default();
                let mut of_rows = Vec::with_capacity(texts.len());
                for row in 0..texts.len() {
                    if row.is_multiple_of(STOP_CHECK_ROWS) {
                        check_stopped(stop)?;
                    }
                    let is_valid = valid.is_none_or(|bits| bits.get(row));
                    of_rows.push(if is_valid { numbers.intern(texts.value(row))? } else { NONE });
                }
                (CodeMapping::InternedStrings(numbers), Some(of_rows))
            }
            ColumnData::Opaque(_) => return Err(Error::Internal("a join key's type is not comparable")),
        };
        Ok((Self { form: PhysicalType::from_column(column), mapping: domain, has_null }, numbers))
    }

    /// Returns the number of codes.
    pub(super) fn size(&self) -> u64 {
        let values = match &self.mapping {
            CodeMapping::Range { size, .. } => *size,
            CodeMapping::InternedInts(numbers) => u64::from(numbers.len()),
            CodeMapping::InternedStrings(numbers) => numbers.len() as u64,
        };
        values + self.null_offset()
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match &self.mapping {
            CodeMapping::Range { .. } => 0,
            CodeMapping::InternedInts(numbers) => numbers.memory_bytes(),
            CodeMapping::InternedStrings(numbers) => numbers.memory_bytes(),
        }
    }

    /// Returns the least value if values are integers and a value's code is its distance from the least.
    pub(super) fn least(&self) -> Option<i64> {
        match &self.mapping {
            CodeMapping::Range { least, .. } if !self.has_null && PhysicalType::Ints.is_compatible_with(self.form) => {
                Some(*least)
            }
            _ => None,
        }
    }

    /// Returns whether the values are strings.
    pub(super) fn is_string(&self) -> bool {
        matches!(self.mapping, CodeMapping::InternedStrings(_))
    }

    /// Returns whether NULL keys match a NULL key of the build side.
    pub(super) fn has_null(&self) -> bool {
        self.has_null
    }

    /// Converts precomputed row numbers to codes and passes them to `each`.
    pub(super) fn codes_from_numbers(&self, numbers: &[u32], each: &mut impl FnMut(usize, u64)) {
        for (row, number) in numbers.iter().enumerate() {
            each(row, if *number == NONE { self.null_code() } else { u64::from(*number) + self.null_offset() });
        }
    }

    /// Passes the code of each row to `each`, [`NO_KEY_CODE`] for values that the build side does not have.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if the values are not comparable with the build side's.
    pub(super) fn for_each_code(
        &self,
        column: &Column,
        seen: &mut DictionaryLookupCache,
        each: &mut impl FnMut(usize, u64),
    ) -> Result<()> {
        if !self.form.is_compatible_with(PhysicalType::from_column(column)) {
            return Err(Error::Internal("a probe-side key has another physical type"));
        }
        let (valid, null, shift) = (column.validity.as_deref(), self.null_code(), self.null_offset());
        let found = |number: u32| if number == NONE { NO_KEY_CODE } else { u64::from(number) + shift };
        match (&column.data, &self.mapping) {
            (ColumnData::Bools(bits), CodeMapping::Range { .. }) => {
                for row in 0..bits.rows() {
                    let is_valid = valid.is_none_or(|bits| bits.get(row));
                    each(row, if is_valid { u64::from(bits.get(row)) + shift } else { null });
                }
            }
            (ColumnData::Ints { values, .. }, CodeMapping::Range { least, size }) => {
                for_each_value_code(values, valid, null, |value| range_code(value, *least, *size, shift), each);
            }
            (ColumnData::Floats(values), CodeMapping::Range { least, size }) => {
                for_each_value_code(
                    values,
                    valid,
                    null,
                    |value| range_code(to_ordered_bits(value), *least, *size, shift),
                    each,
                );
            }
            (ColumnData::WideInts(values), CodeMapping::Range { least, size }) => {
                let code =
                    |value| i64::try_from(value).map_or(NO_KEY_CODE, |value| range_code(value, *least, *size, shift));
                for_each_value_code(values, valid, null, code, each);
            }
            (ColumnData::Ints { values, .. }, CodeMapping::InternedInts(numbers)) => {
                for_each_value_code(
                    values,
                    valid,
                    null,
                    |value| found(numbers.find(split_i128(i128::from(value)))),
                    each,
                );
            }
            (ColumnData::Floats(values), CodeMapping::InternedInts(numbers)) => {
                for_each_value_code(
                    values,
                    valid,
                    null,
                    |value| found(numbers.find(split_i128(i128::from(to_ordered_bits(value))))),
                    each,
                );
            }
            (ColumnData::WideInts(values), CodeMapping::InternedInts(numbers)) => {
                for_each_value_code(values, valid, null, |value| found(numbers.find(split_i128(value))), each);
            }
            (ColumnData::Texts(texts), CodeMapping::InternedStrings(numbers)) => {
                for row in 0..texts.len() {
                    let is_valid = valid.is_none_or(|bits| bits.get(row));
                    each(row, if is_valid { found(numbers.find(texts.value(row))) } else { null });
                }
            }
            (ColumnData::Dictionary { indices: codes, dictionary: strings }, CodeMapping::InternedStrings(numbers)) => {
                let number_of = seen.entry_numbers(strings);
                for (row, code) in codes.iter().enumerate() {
                    if !valid.is_none_or(|bits| bits.get(row)) {
                        each(row, null);
                        continue;
                    }
                    let number = number_of
                        .get_mut(*code as usize)
                        .ok_or(Error::Internal("a dictionary index of a join key is out of range"))?;
                    if *number == NOT_LOOKED_UP {
                        *number = numbers.find(strings.get(*code));
                    }
                    each(row, found(*number));
                }
            }
            _ => return Err(Error::Internal("a key column's physical type does not match its encoding")),
        }
        Ok(())
    }

    /// Offset of the codes of values, which makes room for the NULL code.
    fn null_offset(&self) -> u64 {
        u64::from(self.has_null)
    }

    /// Code of NULL rows.
    fn null_code(&self) -> u64 {
        if self.has_null { 0 } else { NO_KEY_CODE }
    }
}

impl DictionaryLookupCache {
    /// Returns the cached numbers of a dictionary's entries.
    fn entry_numbers(&mut self, strings: &Arc<Dictionary>) -> &mut Vec<u32> {
        if self.cached_entries > CACHED_ENTRIES_MAX {
            self.cached_entries = 0;
            self.numbers.clear();
        }
        self.numbers.entry(strings.id()).or_insert_with(|| {
            self.cached_entries += strings.len();
            vec![NOT_LOOKED_UP; strings.len()]
        })
    }
}

/// Maps floats to integers of PostgreSQL's order: -0 equals 0, and all NaNs are equal.
fn to_ordered_bits(value: f64) -> i64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }.cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// Returns the code of an integer by its distance from the least value.
#[inline]
fn range_code(value: i64, least: i64, size: u64, shift: u64) -> u64 {
    let distance = value.wrapping_sub(least).cast_unsigned();
    if distance < size { distance + shift } else { NO_KEY_CODE }
}

/// Splits a 128-bit integer into its lower and upper half.
fn split_i128(value: i128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}

/// Passes the code of each row to `each`.
#[inline]
fn for_each_value_code<T: Copy>(
    values: &[T],
    valid: Option<&Bitmap>,
    null: u64,
    code: impl Fn(T) -> u64,
    each: &mut impl FnMut(usize, u64),
) {
    match valid {
        None => values.iter().enumerate().for_each(|(row, value)| each(row, code(*value))),
        Some(bits) => {
            let codes = values.iter().enumerate();
            codes.for_each(|(row, value)| each(row, if bits.get(row) { code(*value) } else { null }));
        }
    }
}

/// Returns the number of each row, [`NONE`] for NULLs.
fn intern_rows<T: Copy>(
    values: &[T],
    valid: Option<&Bitmap>,
    stop: &AtomicBool,
    mut number: impl FnMut(T) -> Result<u32>,
) -> Result<Vec<u32>> {
    let mut numbers = Vec::with_capacity(values.len());
    for (stretch, values) in values.chunks(STOP_CHECK_ROWS).enumerate() {
        check_stopped(stop)?;
        for (row, value) in (stretch * STOP_CHECK_ROWS..).zip(values) {
            let is_valid = valid.is_none_or(|bits| bits.get(row));
            numbers.push(if is_valid { number(*value)? } else { NONE });
        }
    }
    Ok(numbers)
}

/// Chooses the mapping of 64-bit integers: distances from the least value, or numbers if their range is too
/// large.
fn choose_int_mapping<T: Copy>(
    values: &[T],
    valid: Option<&Bitmap>,
    stop: &AtomicBool,
    integer: impl Fn(T) -> i64,
) -> Result<(CodeMapping, Option<Vec<u32>>)> {
    let Some((least, greatest)) = extremes(values, valid, &integer) else {
        return Ok((CodeMapping::Range { least: 0, size: 0 }, None));
    };
    let span = greatest.wrapping_sub(least).cast_unsigned();
    // All codes, including the NULL code, must be less than NO_WORD.
    if span < NO_KEY_CODE - 2 {
        return Ok((CodeMapping::Range { least, size: span + 1 }, None));
    }
    let mut numbers = PairInterner::default();
    let of_rows = intern_rows(values, valid, stop, |value| numbers.intern(split_i128(i128::from(integer(value)))))?;
    Ok((CodeMapping::InternedInts(numbers), Some(of_rows)))
}

/// Chooses the mapping of 128-bit integers.
fn choose_wide_mapping(
    values: &[i128],
    valid: Option<&Bitmap>,
    stop: &AtomicBool,
) -> Result<(CodeMapping, Option<Vec<u32>>)> {
    let is_narrow = |value: i128| i64::try_from(value).is_ok();
    if values.iter().enumerate().all(|(row, value)| is_narrow(*value) || !valid.is_none_or(|bits| bits.get(row))) {
        return choose_int_mapping(values, valid, stop, |value| value as i64);
    }
    let mut numbers = PairInterner::default();
    let of_rows = intern_rows(values, valid, stop, |value| numbers.intern(split_i128(value)))?;
    Ok((CodeMapping::InternedInts(numbers), Some(of_rows)))
}

/// Returns the least and the greatest non-NULL value.
fn extremes<T: Copy>(values: &[T], valid: Option<&Bitmap>, integer: impl Fn(T) -> i64) -> Option<(i64, i64)> {
    let mut extremes = (i64::MAX, i64::MIN);
    let mut widen = |value: T| {
        let value = integer(value);
        extremes = (extremes.0.min(value), extremes.1.max(value));
    };
    match valid {
        None => values.iter().for_each(|value| widen(*value)),
        Some(bits) => bits.ones().for_each(|row| widen(values[row])),
    }
    (extremes.0 <= extremes.1).then_some(extremes)
}
