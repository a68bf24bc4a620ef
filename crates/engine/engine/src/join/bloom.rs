//! Register-blocked Bloom filter with about two bytes per value.

use super::hash_index::hash;

/// Minimum bits per value. With four bits set per value, about 1 % of absent values pass.
const BITS_PER_VALUE: u64 = 16;

/// Maximum number of values: the filter should stay in a near cache.
const VALUES_MAX: u64 = 1 << 22;

/// Bloom filter in which each value sets four bits of one word, so that a test reads one memory location.
#[derive(Debug)]
pub(super) struct BloomFilter {
    /// Words of the filter; their number is a power of two.
    words: Vec<u64>,
    /// Right shift that maps a hash to its word.
    shift: u32,
}

impl BloomFilter {
    /// Creates a filter for this many values. Returns `None` if there are no or too many values, or if the filter
    /// would exceed `bits_max` bits.
    pub(super) fn try_with_capacity(values: u64, bits_max: u64) -> Option<Self> {
        let words = (values * BITS_PER_VALUE).div_ceil(64).next_power_of_two().max(2);
        let fits = 0 < values && values <= VALUES_MAX && words * 64 <= bits_max;
        fits.then(|| Self { words: vec![0; words as usize], shift: 64 - words.trailing_zeros() })
    }

    /// Adds a value.
    pub(super) fn insert(&mut self, value: i64) {
        let hash = hash(value.cast_unsigned());
        self.words[(hash >> self.shift) as usize] |= pattern(hash);
    }

    /// Returns whether a value may have been added; never false for added values.
    #[inline]
    pub(super) fn may_contain(&self, value: i64) -> bool {
        let hash = hash(value.cast_unsigned());
        let (word, pattern) = (self.words[(hash >> self.shift) as usize & (self.words.len() - 1)], pattern(hash));
        word & pattern == pattern
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

/// Returns the four bits that a hash sets in its word.
#[inline]
fn pattern(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_values_are_found_and_few_others() {
        let mut bloom = BloomFilter::try_with_capacity(10_000, 1 << 20).unwrap();
        let value = |number: i64| number.wrapping_mul(1_000_003_000_017);
        (0..10_000).for_each(|number| bloom.insert(value(number)));
        assert!((0..10_000).all(|number| bloom.may_contain(value(number))));
        let wrong = (10_000..110_000).filter(|number| bloom.may_contain(value(*number))).count();
        assert!(wrong < 3_000, "{wrong} of 100,000 values seem to be there");
        assert!(bloom.memory_bytes() <= 10_000 * 4);
    }

    #[test]
    fn capacity_is_limited() {
        assert!(BloomFilter::try_with_capacity(10_000, 1 << 10).is_none());
        assert!(BloomFilter::try_with_capacity(VALUES_MAX + 1, u64::MAX).is_none());
        assert!(BloomFilter::try_with_capacity(0, u64::MAX).is_none());
        let mut one = BloomFilter::try_with_capacity(1, u64::MAX).unwrap();
        one.insert(i64::MIN);
        assert!(one.may_contain(i64::MIN));
    }
}
