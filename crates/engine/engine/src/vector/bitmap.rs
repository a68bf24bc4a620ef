//! Bitmap with one bit per row.

/// Bitmap with one bit per row: row `r` is bit `r % 64` of word `r / 64`. Bits after the last row are zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    rows: usize,
}

impl Bitmap {
    /// Creates a bitmap of `rows` bits that all equal `value`.
    #[must_use]
    pub fn filled(rows: usize, value: bool) -> Self {
        let mut words = vec![if value { u64::MAX } else { 0 }; rows.div_ceil(64)];
        clear_unused_bits(&mut words, rows);
        Self { words, rows }
    }

    /// Creates a bitmap from its words and clears the bits after the last row.
    ///
    /// # Panics
    /// Panics if the number of words does not match the number of rows.
    #[must_use]
    pub fn from_words(mut words: Vec<u64>, rows: usize) -> Self {
        assert_eq!(words.len(), rows.div_ceil(64), "a bitmap needs one word per 64 rows");
        clear_unused_bits(&mut words, rows);
        Self { words, rows }
    }

    /// Creates a bitmap whose bits are computed by `is_set` from the row number.
    #[inline]
    pub fn from_fn(rows: usize, mut is_set: impl FnMut(usize) -> bool) -> Self {
        let mut words = Vec::with_capacity(rows.div_ceil(64));
        let mut row = 0;
        while row < rows {
            let end = rows.min(row + 64);
            let mut word = 0;
            for (bit, row) in (row..end).enumerate() {
                word |= u64::from(is_set(row)) << bit;
            }
            words.push(word);
            row = end;
        }
        Self { words, rows }
    }

    /// Creates a bitmap with the result of `test` for each value.
    #[inline]
    pub fn from_values<T: Copy>(values: &[T], mut test: impl FnMut(T) -> bool) -> Self {
        let word =
            |chunk: &[T]| chunk.iter().enumerate().fold(0, |word, (bit, value)| word | u64::from(test(*value)) << bit);
        Self { words: values.chunks(64).map(word).collect(), rows: values.len() }
    }

    /// Creates a bitmap with the result of `test` for each pair of values.
    #[inline]
    pub fn from_pairs<T: Copy>(left: &[T], right: &[T], mut test: impl FnMut(T, T) -> bool) -> Self {
        let word = |(left, right): (&[T], &[T])| {
            let pairs = left.iter().zip(right).enumerate();
            pairs.fold(0, |word, (bit, (left, right))| word | u64::from(test(*left, *right)) << bit)
        };
        Self { words: left.chunks(64).zip(right.chunks(64)).map(word).collect(), rows: left.len() }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the words of the bitmap.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the number of set bits.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the bit of a row.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Returns the bit of a row, or false if the row does not exist.
    #[must_use]
    pub fn get_or_false(&self, row: usize) -> bool {
        row < self.rows && self.get(row)
    }

    /// Sets the bit of a row.
    #[inline]
    pub fn set(&mut self, row: usize) {
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// Returns the intersection of two bitmaps.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.zip_words(other, |a, b| a & b)
    }

    /// Returns the union of two bitmaps.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.zip_words(other, |a, b| a | b)
    }

    /// Returns the bits set in `self` but not in `other`.
    #[must_use]
    pub fn and_not(&self, other: &Self) -> Self {
        self.zip_words(other, |a, b| a & !b)
    }

    /// Returns the complement.
    #[must_use]
    pub fn not(&self) -> Self {
        Self::from_words(self.words.iter().map(|word| !word).collect(), self.rows)
    }

    fn zip_words(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        debug_assert_eq!(self.rows, other.rows, "bitmaps must have the same number of rows");
        let words = self.words.iter().zip(&other.words).map(|(a, b)| of(*a, *b)).collect();
        Self { words, rows: self.rows }
    }

    /// Iterates over the rows whose bits are set, in ascending order.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        })
    }
}

/// Clears the bits after the last row.
fn clear_unused_bits(words: &mut [u64], rows: usize) {
    if !rows.is_multiple_of(64)
        && let Some(last) = words.last_mut()
    {
        *last &= (1 << (rows % 64)) - 1;
    }
}
