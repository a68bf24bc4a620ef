//! One word for all keys of a row.

use std::sync::atomic::AtomicBool;

use super::NO_WORD;
use super::encoding::{Encoding, Remembered};
use super::numbers::PairNumbers;
use crate::{Batch, Column, Data, Error, NONE, Result, unless_stopped};

/// How keys become a word: their codes are its digits, each to the base of its key's size. Where a word would be too small for the
/// next digit, it and the digit are numbered.
#[derive(Debug)]
pub(super) struct Words {
    keys: Vec<Key>,
    /// Words are less.
    size: u64,
}

#[derive(Debug)]
struct Key {
    encoding: Encoding,
    joined: Joined,
}

/// How a code joins the word of the keys before it.
#[derive(Debug)]
enum Joined {
    /// The word is the sum of it and the code so many times.
    Digit(u64),
    Numbered(PairNumbers),
}

impl Words {
    /// Learns from the build side's keys, gives their words too: [`NO_WORD`] for rows that match nothing.
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

    /// Words are less than this.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The encoding of a key.
    pub(super) fn encoding(&self, key: usize) -> Option<&Encoding> {
        self.keys.get(key).map(|key| &key.encoding)
    }

    /// What it takes in memory.
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

    /// Values and the least of the build side's where the key is one of integers and a row's word is just the distance between them.
    /// What is no build row's key is then no build row's word either.
    pub(super) fn plain<'a>(&self, batch: &'a Batch, positions: &[usize]) -> Option<(&'a [i64], i64)> {
        let ([key], [position]) = (&*self.keys, positions) else { return None };
        let column = batch.columns.get(*position)?;
        match (&column.data, &column.validity) {
            (Data::Ints { values, .. }, None) => Some((values, key.encoding.least()?)),
            _ => None,
        }
    }

    /// The words of a probe batch's rows, [`NO_WORD`] where no build row has the keys.
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
                batch.columns.get(*position).ok_or(Error::Form("a join's key is no column of its probe side"))?;
            let words = &mut words[..batch.rows];
            if column.rows() != words.len() {
                return Err(Error::Form("a batch of a join's probe side has columns of other lengths"));
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

#[inline]
fn with_digit(word: u64, code: u64, base: u64) -> u64 {
    let sum = word.wrapping_add(code.wrapping_mul(base));
    if word == NO_WORD || code == NO_WORD { NO_WORD } else { sum }
}

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
