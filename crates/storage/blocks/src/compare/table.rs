//! Many ranges at once: a table that is made once for a block.

use crate::kernels::{Kernels, Lane};
use crate::row_set::positions;
use crate::{Mask, Ranges, VECTOR_ROWS};

/// A table of as many places stays near the processor.
const EXACT_PLACES_MAX: u64 = 1 << 16;
const HASHED_PLACES: u64 = 1 << 12;
/// With more keys than these too many places of a hashed table would be taken.
const HASHED_KEYS_MAX: u64 = 512;

/// For each key, or its lowest bits, whether it may lie in the ranges.
pub(super) struct Table {
    places: Vec<u8>,
    /// The key of the first place.
    first: i64,
    /// Whether keys with the same lowest bits are told apart.
    is_exact: bool,
}

impl Table {
    /// A table where one pays.
    pub(super) fn new(ranges: &Ranges) -> Option<Self> {
        let (Some((least, _)), Some((_, greatest))) = (ranges.as_slice().first(), ranges.as_slice().last()) else {
            return None;
        };
        let span = greatest.wrapping_sub(*least) as u64;
        let is_exact = span < EXACT_PLACES_MAX;
        let keys = ranges
            .as_slice()
            .iter()
            .fold(0_u64, |sum, (low, high)| sum.saturating_add(high.wrapping_sub(*low) as u64).saturating_add(1));
        if !is_exact && HASHED_KEYS_MAX < keys {
            return None;
        }
        let length = if is_exact { (span + 1).next_power_of_two() } else { HASHED_PLACES };
        let mut places = vec![0; length as usize];
        for (low, high) in ranges.as_slice() {
            for distance in 0..=high.wrapping_sub(*low) as u64 {
                let place = (low.wrapping_sub(*least) as u64).wrapping_add(distance) & (length - 1);
                places[place as usize] = u8::MAX;
            }
        }
        Some(Self { places, first: *least, is_exact })
    }

    /// Which lanes over a base lie in the ranges. No lane under `low` and none over `high` is asked for.
    pub(super) fn mask<T: Lane>(
        &self,
        lanes: &[T; VECTOR_ROWS],
        base: i64,
        (low, high): (u64, u64),
        ranges: &Ranges,
    ) -> Mask {
        let kernels = Kernels::get();
        let mut mask = kernels.between(lanes, T::truncate(low), T::truncate(high - low));
        let found = kernels.lookup(lanes, base.wrapping_sub(self.first) as u64, &self.places);
        for (word, bits) in mask.iter_mut().zip(found) {
            *word &= bits;
        }
        if self.is_exact { mask } else { verified(&mask, lanes, base, ranges) }
    }
}

/// Which of the lanes in a mask lie in the ranges, one by one.
pub(super) fn verified<T: Lane>(mask: &Mask, lanes: &[T; VECTOR_ROWS], base: i64, ranges: &Ranges) -> Mask {
    let mut kept = Mask::default();
    for row in positions(mask) {
        let is_in = ranges.contains(base.wrapping_add(lanes[row].extend() as i64));
        kept[row / 64] |= u64::from(is_in) << (row % 64);
    }
    kept
}
