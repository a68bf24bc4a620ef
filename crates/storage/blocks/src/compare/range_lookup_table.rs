//! Lookup tables for conditions with many ranges.

use crate::kernels::{Kernels, Lane};
use crate::row_set::positions;
use crate::{KeyRanges, Mask, VECTOR_ROWS};

/// Maximum number of entries of an exact table, which then stays in the processor's cache.
const EXACT_ENTRIES_MAX: u64 = 1 << 16;
/// Number of entries of a hashed table.
const HASHED_ENTRIES: u64 = 1 << 12;
/// Maximum number of keys in a hashed table; more would cause too many false positives.
const HASHED_KEYS_MAX: u64 = 512;

/// Lookup table that contains for each key, or for its lowest bits, whether it may lie in the ranges.
pub(super) struct RangeLookupTable {
    /// 255 for keys that may lie in the ranges, else 0.
    entries: Vec<u8>,
    /// Key of the first entry.
    first_key: i64,
    /// Whether the table covers all keys of the ranges; else hits have to be verified.
    is_exact: bool,
}

impl RangeLookupTable {
    /// Builds a table if the ranges are narrow enough or have few enough keys; else returns `None`.
    pub(super) fn try_new(ranges: &KeyRanges) -> Option<Self> {
        let (Some((least, _)), Some((_, greatest))) = (ranges.as_slice().first(), ranges.as_slice().last()) else {
            return None;
        };
        let span = greatest.wrapping_sub(*least) as u64;
        let is_exact = span < EXACT_ENTRIES_MAX;
        let keys = ranges
            .as_slice()
            .iter()
            .fold(0_u64, |sum, (low, high)| sum.saturating_add(high.wrapping_sub(*low) as u64).saturating_add(1));
        if !is_exact && HASHED_KEYS_MAX < keys {
            return None;
        }
        let length = if is_exact { (span + 1).next_power_of_two() } else { HASHED_ENTRIES };
        let mut places = vec![0; length as usize];
        for (low, high) in ranges.as_slice() {
            for distance in 0..=high.wrapping_sub(*low) as u64 {
                let place = (low.wrapping_sub(*least) as u64).wrapping_add(distance) & (length - 1);
                places[place as usize] = u8::MAX;
            }
        }
        Some(Self { entries: places, first_key: *least, is_exact })
    }

    /// Returns the mask of the lanes, offsets from `base`, that lie in the ranges. Lanes outside of `low..=high` are
    /// excluded.
    pub(super) fn mask<T: Lane>(
        &self,
        lanes: &[T; VECTOR_ROWS],
        base: i64,
        (low, high): (u64, u64),
        ranges: &KeyRanges,
    ) -> Mask {
        let kernels = Kernels::get();
        let mut mask = kernels.mask_between(lanes, T::truncate(low), T::truncate(high - low));
        let found = kernels.mask_by_lookup(lanes, base.wrapping_sub(self.first_key) as u64, &self.entries);
        for (word, bits) in mask.iter_mut().zip(found) {
            *word &= bits;
        }
        if self.is_exact { mask } else { verify_lanes(&mask, lanes, base, ranges) }
    }
}

/// Returns the lanes of `mask` that lie in the ranges, tested one by one.
pub(super) fn verify_lanes<T: Lane>(mask: &Mask, lanes: &[T; VECTOR_ROWS], base: i64, ranges: &KeyRanges) -> Mask {
    let mut verified = Mask::default();
    for row in positions(mask) {
        let is_in = ranges.contains(base.wrapping_add(lanes[row].extend() as i64));
        verified[row / 64] |= u64::from(is_in) << (row % 64);
    }
    verified
}
