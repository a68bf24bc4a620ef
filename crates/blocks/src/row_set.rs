//! Which rows of a block are still of interest.

use std::ops::Range;

use crate::{BLOCK_ROWS, Mask, VECTOR_ROWS};

/// One bit for each row of a block, in row order: 8 KB. Predicates take rows away.
#[derive(Clone, PartialEq, Eq)]
pub struct RowSet {
    words: Box<[u64; BLOCK_ROWS / 64]>,
    rows: usize,
}

impl RowSet {
    /// All of `rows` rows.
    ///
    /// # Panics
    /// If a block does not hold as many.
    pub fn all(rows: usize) -> Self {
        let mut set = Self::none(rows);
        set.words[..rows / 64].fill(u64::MAX);
        if !rows.is_multiple_of(64) {
            set.words[rows / 64] = (1 << (rows % 64)) - 1;
        }
        set
    }

    /// None of `rows` rows.
    ///
    /// # Panics
    /// If a block does not hold as many.
    pub fn none(rows: usize) -> Self {
        assert!(rows <= BLOCK_ROWS, "a block holds at most {BLOCK_ROWS} rows");
        Self { words: Box::new([0; BLOCK_ROWS / 64]), rows }
    }

    /// How many rows there are, in the set or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many vectors there are.
    pub fn vectors(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// How many rows are in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether a row is in the set.
    pub fn contains(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// The rows of one vector.
    pub fn vector(&self, vector: usize) -> &Mask {
        let first = vector * Mask::default().len();
        self.words[first..].first_chunk().expect("a vector of the block")
    }

    pub(crate) fn vector_mut(&mut self, vector: usize) -> &mut Mask {
        let first = vector * Mask::default().len();
        self.words[first..].first_chunk_mut().expect("a vector of the block")
    }

    /// How many rows of a vector are in the set.
    pub fn count_in(&self, vector: usize) -> usize {
        self.vector(vector).iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no row of a vector is in the set.
    pub fn is_empty_in(&self, vector: usize) -> bool {
        self.vector(vector).iter().fold(0, |all, word| all | word) == 0
    }

    /// Whether at most so few rows of a vector are in the set, which is known without counting where many are.
    pub(crate) fn has_few_in(&self, vector: usize, rows: usize) -> bool {
        self.vector(vector).iter().filter(|word| **word != 0).count() <= rows && self.count_in(vector) <= rows
    }

    /// Keeps of a vector only rows that the mask has too.
    pub fn and_vector(&mut self, vector: usize, mask: &Mask) {
        for (word, bits) in self.vector_mut(vector).iter_mut().zip(mask) {
            *word &= bits;
        }
    }

    /// Takes all rows of a vector away.
    pub fn clear_vector(&mut self, vector: usize) {
        *self.vector_mut(vector) = Mask::default();
    }

    /// Takes all rows away.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds a row.
    pub fn insert(&mut self, row: usize) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// Takes a row away.
    pub fn remove(&mut self, row: usize) {
        self.words[row / 64] &= !(1 << (row % 64));
    }

    /// Takes a range of rows away.
    pub fn remove_range(&mut self, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let (first, last) = (rows.start / 64, (rows.end - 1) / 64);
        let head = u64::MAX << (rows.start % 64);
        let tail = u64::MAX >> (63 - (rows.end - 1) % 64);
        if first == last {
            self.words[first] &= !(head & tail);
            return;
        }
        self.words[first] &= !head;
        self.words[first + 1..last].fill(0);
        self.words[last] &= !tail;
    }

    /// Keeps only rows that are in the other set too.
    pub fn and(&mut self, other: &Self) {
        for (word, bits) in self.words.iter_mut().zip(other.words.iter()) {
            *word &= bits;
        }
    }

    /// Takes the rows of the other set away.
    pub fn and_not(&mut self, other: &Self) {
        for (word, bits) in self.words.iter_mut().zip(other.words.iter()) {
            *word &= !bits;
        }
    }

    /// Adds the rows of another set over the same rows.
    pub fn or(&mut self, other: &Self) {
        debug_assert_eq!(self.rows, other.rows, "sets over the same rows");
        for (word, bits) in self.words.iter_mut().zip(other.words.iter()) {
            *word |= bits;
        }
    }

    /// The rows in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(word, bits)| ones(*bits).map(move |bit| word * 64 + bit))
    }
}

impl std::fmt::Debug for RowSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowSet({} of {})", self.count(), self.rows)
    }
}

/// Positions of a mask's set bits, ascending.
pub(crate) fn positions(mask: &Mask) -> impl Iterator<Item = usize> + '_ {
    mask.iter().enumerate().flat_map(|(word, bits)| ones(*bits).map(move |bit| word * 64 + bit))
}

/// The set bits of a word, ascending.
pub(crate) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_there_and_no_others() {
        for rows in [0, 1, 63, 64, 65, 1023, 1024, 1025, 65_535, 65_536] {
            let set = RowSet::all(rows);
            assert_eq!(set.count(), rows);
            assert!(set.iter().eq(0..rows));
        }
    }

    #[test]
    fn a_range_is_taken_away_whole() {
        for range in [0..0, 0..1, 63..64, 63..65, 5..5000, 64..128, 1024..65_536, 0..65_536] {
            let mut set = RowSet::all(65_536);
            set.remove_range(range.clone());
            assert!(set.iter().eq((0..65_536).filter(|row| !range.contains(row))), "{range:?}");
        }
    }
}
