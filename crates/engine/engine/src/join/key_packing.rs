//! Packing of all key columns of a row into one 64-bit key code.

use std::sync::atomic::AtomicBool;

use super::NO_KEY_CODE;
use super::key_encoding::{DictionaryLookupCache, KeyEncoding};
use super::pair_interner::PairInterner;
use crate::{Batch, Column, ColumnData, Error, NONE, Result, check_stopped};

/// Packing of key columns into a mixed-radix number: the codes of the columns are its digits, and the base of each
/// digit is the size of its column's encoding. Where the number would exceed 64 bits, the pair of the number so far
/// and the next code is replaced by a dense number.
#[derive(Debug)]
pub(super) struct KeyPacking {
    keys: Vec<Key>,
    /// Exclusive upper bound of key codes.
    size: u64,
}

/// One key column.
#[derive(Debug)]
struct Key {
    encoding: KeyEncoding,
    combination: CodeCombination,
}

/// Way in which the code of a column is combined with the key code of the columns before it.
#[derive(Debug)]
enum CodeCombination {
    /// Adds the code multiplied by this factor.
    Digit(u64),
    /// Replaces the pair of key code and code by its number.
    Interned(PairInterner),
}

impl KeyPacking {
    /// Builds the packing from the build side's key columns. Also returns the build rows' key codes, [`NO_KEY_CODE`]
    /// for rows that match nothing.
    pub(super) fn from_build_keys(
        columns: &[&Column],
        rows: usize,
        nulls_are_equal: bool,
        stop: &AtomicBool,
    ) -> Result<(Self, Vec<u64>)> {
        let mut learnt = Self { keys: Vec::with_capacity(columns.len()), size: 1 };
        let mut words = vec![0; rows];
        for column in columns {
            let (encoding, numbers) = KeyEncoding::from_build_column(column, nulls_are_equal, stop)?;
            check_stopped(stop)?;
            let codes = |each: &mut dyn FnMut(usize, u64)| match &numbers {
                Some(numbers) => {
                    encoding.codes_from_numbers(numbers, &mut |row, code| each(row, code));
                    Ok(())
                }
                None => encoding
                    .for_each_code(column, &mut DictionaryLookupCache::default(), &mut |row, code| each(row, code)),
            };
            let joined = match learnt.size.checked_mul(encoding.size()).filter(|size| *size < NO_KEY_CODE) {
                Some(size) => {
                    let base = learnt.size;
                    codes(&mut |row, code| words[row] = add_digit(words[row], code, base))?;
                    learnt.size = size;
                    CodeCombination::Digit(base)
                }
                None => {
                    let mut pairs = PairInterner::default();
                    let mut result = Ok(());
                    codes(&mut |row, code| {
                        if words[row] == NO_KEY_CODE || code == NO_KEY_CODE {
                            words[row] = NO_KEY_CODE;
                            return;
                        }
                        match pairs.intern((words[row], code)) {
                            Ok(number) => words[row] = u64::from(number),
                            Err(error) => result = Err(error),
                        }
                    })?;
                    result?;
                    learnt.size = u64::from(pairs.len());
                    CodeCombination::Interned(pairs)
                }
            };
            learnt.keys.push(Key { encoding, combination: joined });
        }
        Ok((learnt, words))
    }

    /// Returns the exclusive upper bound of key codes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the encoding of a key column.
    pub(super) fn encoding(&self, key: usize) -> Option<&KeyEncoding> {
        self.keys.get(key).map(|key| &key.encoding)
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_key = |key: &Key| {
            key.encoding.memory_bytes()
                + match &key.combination {
                    CodeCombination::Digit(_) => 0,
                    CodeCombination::Interned(pairs) => pairs.memory_bytes(),
                }
        };
        self.keys.iter().map(of_key).sum()
    }

    /// Returns the probe values and the least build value if the key is a single integer column without NULLs and its
    /// key code is the distance between them. Values outside of the build side's range then give key codes that no
    /// build row has.
    pub(super) fn single_integer_key<'a>(&self, batch: &'a Batch, positions: &[usize]) -> Option<(&'a [i64], i64)> {
        let ([key], [position]) = (&*self.keys, positions) else { return None };
        let column = batch.columns.get(*position)?;
        match (&column.data, &column.validity) {
            (ColumnData::Ints { values, .. }, None) => Some((values, key.encoding.least()?)),
            _ => None,
        }
    }

    /// Computes the key codes of a probe batch's rows, [`NO_KEY_CODE`] for rows whose key matches no build row.
    pub(super) fn pack_batch(
        &self,
        batch: &Batch,
        positions: &[usize],
        seen: &mut Vec<DictionaryLookupCache>,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        words.clear();
        words.resize(batch.rows, 0);
        seen.resize_with(self.keys.len(), DictionaryLookupCache::default);
        for (index, ((key, position), seen)) in self.keys.iter().zip(positions).zip(seen).enumerate() {
            let column = batch
                .columns
                .get(*position)
                .ok_or(Error::Internal("a join key column is missing in a batch of the probe side"))?;
            let words = &mut words[..batch.rows];
            if column.rows() != words.len() {
                return Err(Error::Internal("a probe-side batch has columns of differing lengths"));
            }
            match &key.combination {
                CodeCombination::Digit(_) if index == 0 => {
                    key.encoding.for_each_code(column, seen, &mut |row, code| words[row] = code)?;
                }
                CodeCombination::Digit(base) => {
                    let mut join = |row: usize, code| words[row] = add_digit(words[row], code, *base);
                    key.encoding.for_each_code(column, seen, &mut join)?;
                }
                CodeCombination::Interned(pairs) => {
                    let mut join = |row: usize, code| words[row] = find_interned(pairs, words[row], code);
                    key.encoding.for_each_code(column, seen, &mut join)?;
                }
            }
        }
        Ok(())
    }
}

/// Adds a digit to a key code.
#[inline]
fn add_digit(word: u64, code: u64, base: u64) -> u64 {
    let sum = word.wrapping_add(code.wrapping_mul(base));
    if word == NO_KEY_CODE || code == NO_KEY_CODE { NO_KEY_CODE } else { sum }
}

/// Looks up the number of a key code and a column's code.
#[inline]
fn find_interned(pairs: &PairInterner, word: u64, code: u64) -> u64 {
    if word == NO_KEY_CODE || code == NO_KEY_CODE {
        return NO_KEY_CODE;
    }
    match pairs.find((word, code)) {
        NONE => NO_KEY_CODE,
        number => u64::from(number),
    }
}
