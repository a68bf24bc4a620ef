//! Which values are surely not among many others, in two bytes for each of these.

use super::slots::hash;

/// Bits for each value, at least. With four of them set about one value of a hundred that is not there seems to be.
const BITS_EACH: u64 = 16;

/// The most values: what tests them should stay in a cache that is near.
const VALUES_MAX: u64 = 1 << 22;

/// Each value sets a few bits of one word: a test reads one place in memory.
#[derive(Debug)]
pub(super) struct Bloom {
    /// As many as a power of two.
    words: Vec<u64>,
    /// A hash's upper bits say which word.
    shift: u32,
}

impl Bloom {
    /// With room for so many values; `None` where these are more than are worth it, or need more than so many bits.
    pub(super) fn with_room(values: u64, bits_max: u64) -> Option<Self> {
        let words = (values * BITS_EACH).div_ceil(64).next_power_of_two().max(2);
        let fits = 0 < values && values <= VALUES_MAX && words * 64 <= bits_max;
        fits.then(|| Self { words: vec![0; words as usize], shift: 64 - words.trailing_zeros() })
    }

    /// Adds a value.
    pub(super) fn add(&mut self, value: i64) {
        let hash = hash(value.cast_unsigned());
        self.words[(hash >> self.shift) as usize] |= pattern(hash);
    }

    /// Whether a value may be there; of those that were added, yes.
    #[inline]
    pub(super) fn may_have(&self, value: i64) -> bool {
        let hash = hash(value.cast_unsigned());
        let (word, pattern) = (self.words[(hash >> self.shift) as usize & (self.words.len() - 1)], pattern(hash));
        word & pattern == pattern
    }

    /// What it takes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

/// Four bits by the lower bits of a hash.
#[inline]
fn pattern(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_few_others() {
        let mut bloom = Bloom::with_room(10_000, 1 << 20).unwrap();
        let value = |number: i64| number.wrapping_mul(1_000_003_000_017);
        (0..10_000).for_each(|number| bloom.add(value(number)));
        assert!((0..10_000).all(|number| bloom.may_have(value(number))));
        let wrong = (10_000..110_000).filter(|number| bloom.may_have(value(*number))).count();
        assert!(wrong < 3_000, "{wrong} of 100,000 values seem to be there");
        assert!(bloom.memory_bytes() <= 10_000 * 4);
    }

    #[test]
    fn it_has_bounds() {
        assert!(Bloom::with_room(10_000, 1 << 10).is_none());
        assert!(Bloom::with_room(VALUES_MAX + 1, u64::MAX).is_none());
        assert!(Bloom::with_room(0, u64::MAX).is_none());
        let mut one = Bloom::with_room(1, u64::MAX).unwrap();
        one.add(i64::MIN);
        assert!(one.may_have(i64::MIN));
    }
}
