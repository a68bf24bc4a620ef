//! Search for ranges of keys in packed vectors.

use std::borrow::Cow;
use std::cell::LazyCell;

use crate::block_body::Packed;
use crate::compare::range_lookup_table::{RangeLookupTable, verify_lanes};
use crate::decode::unpack;
use crate::kernels::{Kernels, Lane};
use crate::{Block, KeyRanges, Mask, VECTOR_ROWS};

/// Number of ranges whose comparisons take as long as one table lookup, for lanes of 8, 16, 32 and 64 bits.
const COMPARED_RANGES_MAX: [usize; 4] = [12, 8, 5, 3];

/// Ranges prepared for a search in the packed vectors of one block.
pub(super) struct RangeFilter<'a> {
    block: &'a Block,
    /// Ranges of packed numbers: keys, or digits of decimal floats.
    packed_ranges: Cow<'a, KeyRanges>,
    /// Lookup table, built at first use.
    lookup_table: LazyCell<Option<RangeLookupTable>, Box<dyn Fn() -> Option<RangeLookupTable> + 'a>>,
}

impl<'a> RangeFilter<'a> {
    pub(super) fn new(block: &'a Block, keys: &'a KeyRanges) -> Self {
        let packed = block.digit_ranges(keys).map_or(Cow::Borrowed(keys), Cow::Owned);
        let ranges = packed.clone();
        Self {
            block,
            packed_ranges: packed,
            lookup_table: LazyCell::new(Box::new(move || RangeLookupTable::try_new(&ranges))),
        }
    }

    /// Removes from `rows` the rows of a vector whose packed offset lies in none of the ranges.
    pub(super) fn remove_rows_outside<T: Lane>(
        &self,
        packed: &Packed,
        vector: usize,
        lanes: &mut [T; VECTOR_ROWS],
        rows: &mut Mask,
    ) {
        let header = self.block.header();
        let base = header.vector_headers[vector].base;
        let greatest = if header.width == 64 { u64::MAX } else { (1 << header.width) - 1 };
        let within = self.packed_ranges.overlapping(base, base.saturating_add_unsigned(greatest));
        let hull = within.first().zip(within.last()).map(|((low, _), (_, high))| (*low, *high));
        let Some((low, high)) = hull.and_then(|(low, high)| self.offset_range(base, greatest, low, high)) else {
            *rows = Mask::default();
            return;
        };
        unpack(packed, vector, header.width, lanes);
        if within.len() == 1 {
            let (low, span) = (T::truncate(low), T::truncate(high - low));
            return Kernels::get().retain_between(lanes, low, span, rows);
        }
        let mut mask = Mask::default();
        if within.len() <= COMPARED_RANGES_MAX[T::BITS.ilog2() as usize - 3] {
            for (low, high) in within {
                if let Some((low, high)) = self.offset_range(base, greatest, *low, *high) {
                    or_into(&mut mask, &mask_between(lanes, low, high));
                }
            }
        } else {
            mask = match &*self.lookup_table {
                Some(table) => table.mask(lanes, base, (low, high), &self.packed_ranges),
                None => verify_lanes(&mask_between(lanes, low, high), lanes, base, &self.packed_ranges),
            };
        }
        and_into(rows, &mask);
    }

    /// Converts a range of packed numbers to a range of offsets from `base`, without the offset of NULL.
    fn offset_range(&self, base: i64, greatest: u64, low: i64, high: i64) -> Option<(u64, u64)> {
        let least = u64::from(self.block.header().null_is_zero);
        let low = if low <= base { least } else { least.max(low.wrapping_sub(base) as u64) };
        let high = if high < base { return None } else { greatest.min(high.wrapping_sub(base) as u64) };
        (low <= high).then_some((low, high))
    }
}

impl Block {
    /// Converts ranges of keys to ranges of digits for decimal floats, whose digits have the order of the numbers;
    /// `None` for other blocks.
    fn digit_ranges(&self, keys: &KeyRanges) -> Option<KeyRanges> {
        self.header().decimal_exponents?;
        let first_at_least = |key: i64| {
            // Binary search over the rank of the digits, counted from the least.
            let (mut low, mut high) = (0_u128, 1 << 64);
            while low < high {
                let middle = low.midpoint(high);
                if self.decode_key(integer_at_rank(middle)) < key { low = middle + 1 } else { high = middle }
            }
            low
        };
        let range = |(low, high): &(i64, i64)| {
            let first = first_at_least(*low);
            let behind = high.checked_add(1).map_or(1 << 64, first_at_least);
            (first < behind).then(|| (integer_at_rank(first), integer_at_rank(behind - 1)))
        };
        Some(KeyRanges::new(keys.as_slice().iter().filter_map(range).collect()))
    }
}

/// Returns the 64-bit integer of rank `count`, counted from the least.
fn integer_at_rank(count: u128) -> i64 {
    (count as u64 ^ 1 << 63) as i64
}

fn mask_between<T: Lane>(lanes: &[T; VECTOR_ROWS], low: u64, high: u64) -> Mask {
    Kernels::get().mask_between(lanes, T::truncate(low), T::truncate(high - low))
}

pub(super) fn or_into(mask: &mut Mask, other: &Mask) {
    for (word, bits) in mask.iter_mut().zip(other) {
        *word |= bits;
    }
}

pub(super) fn and_into(mask: &mut Mask, other: &Mask) {
    for (word, bits) in mask.iter_mut().zip(other) {
        *word &= bits;
    }
}
