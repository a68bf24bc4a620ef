//! Sets of rows of a block.

use std::ops::Range;

use crate::{BLOCK_ROWS, Mask, VECTOR_ROWS};

/// Selection bitmap over the rows of a block (8 KB). Predicates remove rows that do not match.
#[derive(Clone)]
pub struct RowSet {
    words: Box<[u64; BLOCK_ROWS / 64]>,
    rows: usize,
    /// Range `first_word..end_word` that contains all rows of the set, so that sets of few rows are cheap to read.
    first_word: usize,
    end_word: usize,
}

impl RowSet {
    /// Creates a set of all of `rows` rows.
    ///
    /// # Panics
    /// If `rows` exceeds the maximum of a block.
    pub fn all(rows: usize) -> Self {
        let mut set = Self::none(rows);
        set.words[..rows / 64].fill(u64::MAX);
        if !rows.is_multiple_of(64) {
            set.words[rows / 64] = (1 << (rows % 64)) - 1;
        }
        set.end_word = rows.div_ceil(64);
        set
    }

    /// Creates an empty set over `rows` rows.
    ///
    /// # Panics
    /// If `rows` exceeds the maximum of a block.
    pub fn none(rows: usize) -> Self {
        assert!(rows <= BLOCK_ROWS, "a block has at most {BLOCK_ROWS} rows, not {rows}");
        Self { words: Box::new([0; BLOCK_ROWS / 64]), rows, first_word: 0, end_word: 0 }
    }

    /// Returns the number of rows of the block, whether in the set or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of vectors of the block.
    pub fn vectors(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// Returns the number of rows in the set.
    pub fn count(&self) -> usize {
        self.words[self.first_word..self.end_word].iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words[self.first_word..self.end_word].iter().all(|word| *word == 0)
    }

    /// Returns the range of vectors that contains all rows of the set.
    pub fn vector_span(&self) -> Range<usize> {
        let words = Mask::default().len();
        self.first_word / words..self.end_word.div_ceil(words)
    }

    /// Whether a row is in the set.
    pub fn contains(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Returns the mask of one vector.
    pub fn vector(&self, vector: usize) -> &Mask {
        let first = vector * Mask::default().len();
        self.words[first..].first_chunk().expect("the vector exists in the block")
    }

    pub(crate) fn vector_mut(&mut self, vector: usize) -> &mut Mask {
        let first = vector * Mask::default().len();
        self.words[first..].first_chunk_mut().expect("the vector exists in the block")
    }

    /// Returns the number of rows of a vector in the set.
    pub fn count_in_vector(&self, vector: usize) -> usize {
        self.vector(vector).iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no row of a vector is in the set.
    pub fn is_empty_in_vector(&self, vector: usize) -> bool {
        self.vector(vector).iter().fold(0, |all, word| all | word) == 0
    }

    /// Whether at most `rows` rows of a vector are in the set. Cheaper than counting if there are many.
    pub(crate) fn has_at_most_in_vector(&self, vector: usize, rows: usize) -> bool {
        self.vector(vector).iter().filter(|word| **word != 0).count() <= rows && self.count_in_vector(vector) <= rows
    }

    /// Removes the rows of a vector that are not in `mask`.
    pub fn retain_in_vector(&mut self, vector: usize, mask: &Mask) {
        for (word, bits) in self.vector_mut(vector).iter_mut().zip(mask) {
            *word &= bits;
        }
    }

    /// Removes all rows of a vector.
    pub fn clear_vector(&mut self, vector: usize) {
        *self.vector_mut(vector) = Mask::default();
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.words.fill(0);
        (self.first_word, self.end_word) = (0, 0);
    }

    /// Adds a row.
    pub fn insert(&mut self, row: usize) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let word = row / 64;
        self.words[word] |= 1 << (row % 64);
        self.first_word = if self.first_word == self.end_word { word } else { self.first_word.min(word) };
        self.end_word = self.end_word.max(word + 1);
    }

    /// Removes a row.
    pub fn remove(&mut self, row: usize) {
        self.words[row / 64] &= !(1 << (row % 64));
    }

    /// Removes the rows of `part`, a subset, whose bit in `kept` is not set. `kept` has one bit per row of `part`, in
    /// their order, least significant bit first.
    pub fn retain(&mut self, part: &Self, passing: &[u64]) {
        let mut at = 0;
        for (word, rows) in
            self.words[part.first_word..part.end_word].iter_mut().zip(&part.words[part.first_word..part.end_word])
        {
            let count = rows.count_ones();
            *word &= !rows | deposit_bits(bits_at(passing, at, count), *rows, count);
            at += count as usize;
        }
    }

    /// Removes a range of rows.
    pub fn remove_range(&mut self, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let (first, last) = (rows.start / 64, (rows.end - 1) / 64);
        let head = u64::MAX << (rows.start % 64);
        let tail = u64::MAX >> (63 - (rows.end - 1) % 64);
        if first == last {
            self.words[first] &= !(head & tail);
        } else {
            self.words[first] &= !head;
            self.words[first + 1..last].fill(0);
            self.words[last] &= !tail;
        }
        if rows.start <= self.first_word * 64 {
            self.first_word = self.first_word.max(rows.end / 64).min(self.end_word);
        }
        if self.rows.min(self.end_word * 64) <= rows.end {
            self.end_word = self.end_word.min(rows.start.div_ceil(64)).max(self.first_word);
        }
    }

    /// Intersects with another set over the same rows.
    pub fn intersect(&mut self, other: &Self) {
        for (word, bits) in self.words.iter_mut().zip(other.words.iter()) {
            *word &= bits;
        }
    }

    /// Removes the rows of another set over the same rows.
    pub fn subtract(&mut self, other: &Self) {
        for (word, bits) in self.words.iter_mut().zip(other.words.iter()) {
            *word &= !bits;
        }
    }

    /// Adds the rows of another set over the same rows.
    pub fn union(&mut self, other: &Self) {
        debug_assert_eq!(self.rows, other.rows, "both sets must be over the same rows");
        for (word, bits) in self.words.iter_mut().zip(other.words.iter()) {
            *word |= bits;
        }
        if self.first_word == self.end_word {
            (self.first_word, self.end_word) = (other.first_word, other.end_word);
        } else if other.first_word != other.end_word {
            (self.first_word, self.end_word) =
                (self.first_word.min(other.first_word), self.end_word.max(other.end_word));
        }
    }

    /// Iterates over the rows in the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.words[self.first_word..self.end_word].iter().zip(self.first_word..);
        words.flat_map(|(bits, word)| ones(*bits).map(move |bit| word * 64 + bit))
    }
}

impl PartialEq for RowSet {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.words == other.words
    }
}

impl Eq for RowSet {}

impl std::fmt::Debug for RowSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowSet({} of {})", self.count(), self.rows)
    }
}

/// Returns the `count` bits from bit `at` on.
fn bits_at(words: &[u64], at: usize, count: u32) -> u64 {
    if count == 0 {
        return 0;
    }
    let low = words[at / 64] >> (at % 64);
    let behind =
        if at.is_multiple_of(64) { 0 } else { words.get(at / 64 + 1).map_or(0, |word| word << (64 - at % 64)) };
    (low | behind) & (u64::MAX >> (64 - count))
}

/// Deposits the low bits of `bits` at the positions of the `count` set bits of `word` (as the instruction PDEP does).
fn deposit_bits(bits: u64, word: u64, count: u32) -> u64 {
    if count == 64 || bits == 0 {
        return bits;
    }
    if bits.count_ones() == count {
        return word;
    }
    ones(word).enumerate().fold(0, |all, (at, bit)| all | (bits >> at & 1) << bit)
}

/// Iterates over the positions of a mask's set bits in ascending order.
pub(crate) fn positions(mask: &Mask) -> impl Iterator<Item = usize> + '_ {
    mask.iter().enumerate().flat_map(|(word, bits)| ones(*bits).map(move |bit| word * 64 + bit))
}

/// Iterates over the positions of a word's set bits in ascending order.
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
    fn rows_are_kept_by_their_places_in_a_part() {
        for seed in 1..40 {
            let rows = 5_000;
            let mut set = RowSet::all(rows);
            let mut random = crate::test_columns::numbers(seed);
            if seed % 3 != 0 {
                (0..rows).for_each(|row| {
                    if random.next().unwrap().is_multiple_of(4) {
                        set.remove(row)
                    }
                });
            }
            let mut part = set.clone();
            part.remove_range(0..(seed as usize % 3) * 1024);
            part.remove_range(4096..rows);
            let kept: Vec<u64> = match seed % 4 {
                0 => vec![0; 64],
                1 => vec![u64::MAX; 64],
                _ => random.take(64).collect(),
            };
            let mut expected = set.clone();
            for (at, row) in part.iter().enumerate() {
                if kept[at / 64] >> (at % 64) & 1 == 0 {
                    expected.remove(row);
                }
            }
            set.retain(&part, &kept);
            assert_eq!(set, expected, "seed {seed}");
        }
    }

    #[test]
    fn no_row_lies_outside_of_what_is_spanned() {
        for number in crate::test_columns::numbers(7).take(300) {
            let rows = [1, 64, 1000, 4096, 65_536][number as usize % 5];
            let mut set = if number.is_multiple_of(3) { RowSet::none(rows) } else { RowSet::all(rows) };
            for number in crate::test_columns::numbers(number).take(6) {
                let (row, other) = ((number >> 8) as usize % rows, (number >> 32) as usize % (rows + 1));
                match number % 6 {
                    0 => set.insert(row),
                    1 => set.remove_range(0..other),
                    2 => set.remove_range(other..rows),
                    3 => set.remove_range(row.min(other)..row.max(other)),
                    4 => {
                        let mut more = RowSet::none(rows);
                        more.insert(row);
                        set.union(&more);
                    }
                    _ => set.remove(row),
                }
                let expected: Vec<usize> = (0..rows).filter(|row| set.contains(*row)).collect();
                assert!(set.iter().eq(expected.iter().copied()));
                assert_eq!((set.count(), set.is_empty()), (expected.len(), expected.is_empty()));
                assert!(expected.iter().all(|row| set.vector_span().contains(&(row / VECTOR_ROWS))));
            }
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
