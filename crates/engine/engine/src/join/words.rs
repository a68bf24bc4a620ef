//! Packing of all key columns of a row into one 64-bit key code.

use std::sync::atomic::AtomicBool;

use super::NO_WORD;
use super::encoding::{Encoding, Remembered};
use super::numbers::PairNumbers;
use crate::{Batch, Column, Data, Error, NONE, Result, unless_stopped};

/// Packing of key columns into a mixed-radix number: the codes of the columns are its digits, and the base of each
/// digit is the size of its column's encoding. Where the number would exceed 64 bits, the pair of the number so far
/// and the next code is replaced by a dense number.
#[derive(Debug)]
pub(super) struct Words {
    keys: Vec<Key>,
    /// Exclusive upper bound of key codes.
    size: u64,
}

/// One key column.
#[derive(Debug)]
struct Key {
    encoding: Encoding,
    joined: Joined,
}

/// Way in which the code of a column is combined with the key code of the columns before it.
#[derive(Debug)]
enum Joined {
    /// Adds the code multiplied by this factor.
    Digit(u64),
    /// Replaces the pair of key code and code by its number.
    Numbered(PairNumbers),
}

impl Words {
    /// Builds the packing from the build side's key columns. Also returns the build rows' key codes, [`NO_WORD`] for
    /// rows that match nothing.
    pub(super) fn learn(
        columns: &[&Column],
        rows: usize,
        nulls_are_equal: bool,
        stop: &AtomicBool,
    ) -> Result<(Self, Vec<u64>)> {
        let mut learnt = Self { keys: Vec::with_capacity(columns.len()), size: 1 };
        let mut words = vec![0; rows];
        for column in columns {
            let (encoding, numbers) = Encoding::learn(column, nulls_are_equal, stop)?;
            unless_stopped(stop)?;
            let codes = |each: &mut dyn FnMut(usize, u64)| match &numbers {
                Some(numbers) => {
                    encoding.known(numbers, &mut |row, code| each(row, code));
                    Ok(())
                }
                None => encoding.codes(column, &mut Remembered::default(), &mut |row, code| each(row, code)),
            };
            let joined = match learnt.size.checked_mul(encoding.size()).filter(|size| *size < NO_WORD) {
                Some(size) => {
                    let base = learnt.size;
                    codes(&mut |row, code| words[row] = with_digit(words[row], code, base))?;
                    learnt.size = size;
                    Joined::Digit(base)
                }
                None => {
                    let mut pairs = PairNumbers::default();
                    let mut result = Ok(());
                    codes(&mut |row, code| {
                        if words[row] == NO_WORD || code == NO_WORD {
                            words[row] = NO_WORD;
                            return;
                        }
                        match pairs.number((words[row], code)) {
                            Ok(number) => words[row] = u64::from(number),
                            Err(error) => result = Err(error),
                        }
                    })?;
                    result?;
                    learnt.size = u64::from(pairs.len());
                    Joined::Numbered(pairs)
                }
            };
            learnt.keys.push(Key { encoding, joined });
        }
        Ok((learnt, words))
    }

    /// Returns the exclusive upper bound of key codes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the encoding of a key column.
    pub(super) fn encoding(&self, key: usize) -> Option<&Encoding> {
        self.keys.get(key).map(|key| &key.encoding)
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_key = |key: &Key| {
            key.encoding.memory_bytes()
                + match &key.joined {
                    Joined::Digit(_) => 0,
                    Joined::Numbered(pairs) => pairs.memory_bytes(),
                }
        };
        self.keys.iter().map(of_key).sum()
    }

    /// Returns the probe values and the least build value if the key is a single integer column without NULLs and its
    /// key code is the distance between them. Values outside of the build side's range then give key codes that no
    /// build row has.
    pub(super) fn plain<'a>(&self, batch: &'a Batch, positions: &[usize]) -> Option<(&'a [i64], i64)> {
        let ([key], [position]) = (&*self.keys, positions) else { return None };
        let column = batch.columns.get(*position)?;
        match (&column.data, &column.validity) {
            (Data::Ints { values, .. }, None) => Some((values, key.encoding.least()?)),
            _ => None,
        }
    }

    /// Computes the key codes of a probe batch's rows, [`NO_WORD`] for rows whose key matches no build row.
    pub(super) fn of_batch(
        &self,
        batch: &Batch,
        positions: &[usize],
        seen: &mut Vec<Remembered>,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        words.clear();
        words.resize(batch.rows, 0);
        seen.resize_with(self.keys.len(), Remembered::default);
        for (index, ((key, position), seen)) in self.keys.iter().zip(positions).zip(seen).enumerate() {
            let column =
                batch.columns.get(*position).ok_or(Error::Form("a join key is not a column of the probe side"))?;
            let words = &mut words[..batch.rows];
            if column.rows() != words.len() {
                return Err(Error::Form("a probe-side batch has columns of differing lengths"));
            }
            match &key.joined {
                Joined::Digit(_) if index == 0 => {
                    key.encoding.codes(column, seen, &mut |row, code| words[row] = code)?;
                }
                Joined::Digit(base) => {
                    let mut join = |row: usize, code| words[row] = with_digit(words[row], code, *base);
                    key.encoding.codes(column, seen, &mut join)?;
                }
                Joined::Numbered(pairs) => {
                    let mut join = |row: usize, code| words[row] = numbered(pairs, words[row], code);
                    key.encoding.codes(column, seen, &mut join)?;
                }
            }
        }
        Ok(())
    }
}

/// Adds a digit to a key code.
#[inline]
fn with_digit(word: u64, code: u64, base: u64) -> u64 {
    let sum = word.wrapping_add(code.wrapping_mul(base));
    if word == NO_WORD || code == NO_WORD { NO_WORD } else { sum }
}

/// Looks up the number of a key code and a column's code.
#[inline]
fn numbered(pairs: &PairNumbers, word: u64, code: u64) -> u64 {
    if word == NO_WORD || code == NO_WORD {
        return NO_WORD;
    }
    match pairs.find((word, code)) {
        NONE => NO_WORD,
        number => u64::from(number),
    }
}
