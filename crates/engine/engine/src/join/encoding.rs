//! Encoding of one key column as small integer codes that are equal exactly if the values are equal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::Array;

use super::NO_WORD;
use super::numbers::PairNumbers;
use crate::{Bits, Column, Data, Error, Form, NONE, Result, STRETCH_ROWS, Strings, TextNumbers, unless_stopped};

/// Marks a dictionary entry whose number has not been looked up yet.
const UNKNOWN: u32 = NONE - 1;

/// Approximate number of dictionary entries cached before the cache is cleared.
const REMEMBERED_CODES: usize = 1 << 22;

/// Mapping of a key column's values to codes from 0 to `size() - 1`.
#[derive(Debug)]
pub(super) struct Encoding {
    form: Form,
    domain: Domain,
    /// Whether code 0 is reserved for NULL.
    has_null: bool,
}

/// Kind of mapping from values to codes.
#[derive(Debug)]
enum Domain {
    /// Distance of a value from the least one. Booleans are 0 and 1; floats are mapped to integers of the same order.
    Range { least: i64, size: u64 },
    /// Numbers of distinct integers that do not fit in 64 bits, or whose range is too large for codes.
    Wide(PairNumbers),
    /// Numbers of distinct strings.
    Texts(TextNumbers),
}

/// Cache of dictionary lookups in the probe side's batches, for one key.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// Dense number of each dictionary entry, by the dictionary's id.
    numbers: HashMap<u64, Vec<u32>>,
    /// Count of cached entries.
    codes: usize,
}

impl Encoding {
    /// Builds the encoding from the build side's values. Also returns the rows' numbers if building the encoding
    /// computed them.
    pub(super) fn learn(column: &Column, nulls_are_equal: bool, stop: &AtomicBool) -> Result<(Self, Option<Vec<u32>>)> {
        let valid = column.validity.as_deref();
        let has_null = nulls_are_equal && valid.is_some_and(|bits| bits.count() < bits.rows());
        let (domain, numbers) = match &column.data {
            Data::Bools(_) => (Domain::Range { least: 0, size: 2 }, None),
            Data::Ints { values, .. } => integers(values, valid, stop, |value| value)?,
            Data::Floats(values) => integers(values, valid, stop, ordered)?,
            Data::Wide(values) => wide(values, valid, stop)?,
            Data::Codes { codes, strings } => {
                let mut numbers = TextNumbers::default();
                let mut number_of = vec![UNKNOWN; strings.len()];
                let of_rows = number_rows(codes, valid, stop, |code| {
                    let number = number_of.get_mut(code as usize).ok_or(Error::Form("invalid dictionary index"))?;
                    if *number == UNKNOWN {
                        *number = numbers.number(strings.get(code))?;
                    }
                    Ok(*number)
                })?;
                (Domain::Texts(numbers), Some(of_rows))
            }
            Data::Texts(texts) => {
                let mut numbers = TextNumbers::default();
                let mut of_rows = Vec::with_capacity(texts.len());
                for row in 0..texts.len() {
                    if row.is_multiple_of(STRETCH_ROWS) {
                        unless_stopped(stop)?;
                    }
                    let is_valid = valid.is_none_or(|bits| bits.get(row));
                    of_rows.push(if is_valid { numbers.number(texts.value(row))? } else { NONE });
                }
                (Domain::Texts(numbers), Some(of_rows))
            }
            Data::Opaque(_) => return Err(Error::Form("a join key's type is not comparable")),
        };
        Ok((Self { form: Form::of(column), domain, has_null }, numbers))
    }

    /// Returns the number of codes.
    pub(super) fn size(&self) -> u64 {
        let values = match &self.domain {
            Domain::Range { size, .. } => *size,
            Domain::Wide(numbers) => u64::from(numbers.len()),
            Domain::Texts(numbers) => numbers.len() as u64,
        };
        values + self.shift()
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match &self.domain {
            Domain::Range { .. } => 0,
            Domain::Wide(numbers) => numbers.memory_bytes(),
            Domain::Texts(numbers) => numbers.memory_bytes(),
        }
    }

    /// Returns the least value if values are integers and a value's code is its distance from the least.
    pub(super) fn least(&self) -> Option<i64> {
        match &self.domain {
            Domain::Range { least, .. } if !self.has_null && Form::Ints.is_like(self.form) => Some(*least),
            _ => None,
        }
    }

    /// Returns whether the values are strings.
    pub(super) fn is_of_texts(&self) -> bool {
        matches!(self.domain, Domain::Texts(_))
    }

    /// Returns whether NULL keys match a NULL key of the build side.
    pub(super) fn has_null(&self) -> bool {
        self.has_null
    }

    /// Converts precomputed row numbers to codes and passes them to `each`.
    pub(super) fn known(&self, numbers: &[u32], each: &mut impl FnMut(usize, u64)) {
        for (row, number) in numbers.iter().enumerate() {
            each(row, if *number == NONE { self.null_code() } else { u64::from(*number) + self.shift() });
        }
    }

    /// Passes the code of each row to `each`, [`NO_WORD`] for values that the build side does not have.
    ///
    /// # Errors
    /// Returns [`Error::Form`] if the values are not comparable with the build side's.
    pub(super) fn codes(
        &self,
        column: &Column,
        seen: &mut Remembered,
        each: &mut impl FnMut(usize, u64),
    ) -> Result<()> {
        if !self.form.is_like(Form::of(column)) {
            return Err(Error::Form("a probe-side key has another physical type"));
        }
        let (valid, null, shift) = (column.validity.as_deref(), self.null_code(), self.shift());
        let found = |number: u32| if number == NONE { NO_WORD } else { u64::from(number) + shift };
        match (&column.data, &self.domain) {
            (Data::Bools(bits), Domain::Range { .. }) => {
                for row in 0..bits.rows() {
                    let is_valid = valid.is_none_or(|bits| bits.get(row));
                    each(row, if is_valid { u64::from(bits.get(row)) + shift } else { null });
                }
            }
            (Data::Ints { values, .. }, Domain::Range { least, size }) => {
                rows(values, valid, null, |value| distance(value, *least, *size, shift), each);
            }
            (Data::Floats(values), Domain::Range { least, size }) => {
                rows(values, valid, null, |value| distance(ordered(value), *least, *size, shift), each);
            }
            (Data::Wide(values), Domain::Range { least, size }) => {
                let code = |value| i64::try_from(value).map_or(NO_WORD, |value| distance(value, *least, *size, shift));
                rows(values, valid, null, code, each);
            }
            (Data::Ints { values, .. }, Domain::Wide(numbers)) => {
                rows(values, valid, null, |value| found(numbers.find(pair(i128::from(value)))), each);
            }
            (Data::Floats(values), Domain::Wide(numbers)) => {
                rows(values, valid, null, |value| found(numbers.find(pair(i128::from(ordered(value))))), each);
            }
            (Data::Wide(values), Domain::Wide(numbers)) => {
                rows(values, valid, null, |value| found(numbers.find(pair(value))), each);
            }
            (Data::Texts(texts), Domain::Texts(numbers)) => {
                for row in 0..texts.len() {
                    let is_valid = valid.is_none_or(|bits| bits.get(row));
                    each(row, if is_valid { found(numbers.find(texts.value(row))) } else { null });
                }
            }
            (Data::Codes { codes, strings }, Domain::Texts(numbers)) => {
                let number_of = seen.numbers(strings);
                for (row, code) in codes.iter().enumerate() {
                    if !valid.is_none_or(|bits| bits.get(row)) {
                        each(row, null);
                        continue;
                    }
                    let number = number_of.get_mut(*code as usize).ok_or(Error::Form("invalid dictionary index"))?;
                    if *number == UNKNOWN {
                        *number = numbers.find(strings.get(*code));
                    }
                    each(row, found(*number));
                }
            }
            _ => return Err(Error::Form("a key column's physical type does not match its encoding")),
        }
        Ok(())
    }

    /// Offset of the codes of values, which makes room for the NULL code.
    fn shift(&self) -> u64 {
        u64::from(self.has_null)
    }

    /// Code of NULL rows.
    fn null_code(&self) -> u64 {
        if self.has_null { 0 } else { NO_WORD }
    }
}

impl Remembered {
    /// Returns the cached numbers of a dictionary's entries.
    fn numbers(&mut self, strings: &Arc<Strings>) -> &mut Vec<u32> {
        if self.codes > REMEMBERED_CODES {
            self.codes = 0;
            self.numbers.clear();
        }
        self.numbers.entry(strings.id()).or_insert_with(|| {
            self.codes += strings.len();
            vec![UNKNOWN; strings.len()]
        })
    }
}

/// Maps floats to integers of PostgreSQL's order: -0 equals 0, and all NaNs are equal.
fn ordered(value: f64) -> i64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }.cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// Returns the code of an integer by its distance from the least value.
#[inline]
fn distance(value: i64, least: i64, size: u64, shift: u64) -> u64 {
    let distance = value.wrapping_sub(least).cast_unsigned();
    if distance < size { distance + shift } else { NO_WORD }
}

/// Splits a 128-bit integer into its lower and upper half.
fn pair(value: i128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}

/// Passes the code of each row to `each`.
#[inline]
fn rows<T: Copy>(
    values: &[T],
    valid: Option<&Bits>,
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
fn number_rows<T: Copy>(
    values: &[T],
    valid: Option<&Bits>,
    stop: &AtomicBool,
    mut number: impl FnMut(T) -> Result<u32>,
) -> Result<Vec<u32>> {
    let mut numbers = Vec::with_capacity(values.len());
    for (stretch, values) in values.chunks(STRETCH_ROWS).enumerate() {
        unless_stopped(stop)?;
        for (row, value) in (stretch * STRETCH_ROWS..).zip(values) {
            let is_valid = valid.is_none_or(|bits| bits.get(row));
            numbers.push(if is_valid { number(*value)? } else { NONE });
        }
    }
    Ok(numbers)
}

/// Chooses the mapping of 64-bit integers: distances from the least value, or numbers if their range is too
/// large.
fn integers<T: Copy>(
    values: &[T],
    valid: Option<&Bits>,
    stop: &AtomicBool,
    integer: impl Fn(T) -> i64,
) -> Result<(Domain, Option<Vec<u32>>)> {
    let Some((least, greatest)) = extremes(values, valid, &integer) else {
        return Ok((Domain::Range { least: 0, size: 0 }, None));
    };
    let span = greatest.wrapping_sub(least).cast_unsigned();
    // All codes, including the NULL code, must be less than NO_WORD.
    if span < NO_WORD - 2 {
        return Ok((Domain::Range { least, size: span + 1 }, None));
    }
    let mut numbers = PairNumbers::default();
    let of_rows = number_rows(values, valid, stop, |value| numbers.number(pair(i128::from(integer(value)))))?;
    Ok((Domain::Wide(numbers), Some(of_rows)))
}

/// Chooses the mapping of 128-bit integers.
fn wide(values: &[i128], valid: Option<&Bits>, stop: &AtomicBool) -> Result<(Domain, Option<Vec<u32>>)> {
    let is_narrow = |value: i128| i64::try_from(value).is_ok();
    if values.iter().enumerate().all(|(row, value)| is_narrow(*value) || !valid.is_none_or(|bits| bits.get(row))) {
        return integers(values, valid, stop, |value| value as i64);
    }
    let mut numbers = PairNumbers::default();
    let of_rows = number_rows(values, valid, stop, |value| numbers.number(pair(value)))?;
    Ok((Domain::Wide(numbers), Some(of_rows)))
}

/// Returns the least and the greatest non-NULL value.
fn extremes<T: Copy>(values: &[T], valid: Option<&Bits>, integer: impl Fn(T) -> i64) -> Option<(i64, i64)> {
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
