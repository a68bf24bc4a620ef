//! Ranges of keys against every scheme that has keys.

use crate::body::{Body, Packed, Runs};
use crate::compare::lower::holds;
use crate::decode::{LanesBuffer, unpack};
use crate::format::array;
use crate::kernels::{Kernels, Lane};
use crate::ranges::Zone;
use crate::row_set::positions;
use crate::{Block, Condition, Entry, Mask, Ranges, RowSet, VECTOR_ROWS};

/// A vector of which so few rows are left is not unpacked.
const SINGLE_ROWS_MAX: usize = 12;
/// More ranges than these are looked up in a table rather than compared one by one.
const COMPARED_RANGES_MAX: usize = 6;
/// A table of so many words stays in the first-level cache.
const TABLE_WORDS_MAX: u64 = 1024;

impl Block {
    /// Keeps the rows whose key lies in ranges.
    pub(super) fn filter_keys(&self, ranges: &Ranges, rows: &mut RowSet) {
        debug_assert_eq!(rows.rows(), self.head().rows, "a set of this block's rows");
        if let Body::Runs(runs) = self.body() {
            return self.filter_runs(runs, ranges, rows);
        }
        let mut buffer = None;
        for (vector, entry) in self.head().entries.iter().enumerate() {
            let is_empty = rows.vector(vector).iter().all(|word| *word == 0);
            if is_empty {
                continue;
            }
            match self.zone(entry, self.head().rows_in(vector), ranges) {
                Zone::None => rows.clear_vector(vector),
                Zone::All if entry.nulls == 0 => {}
                _ if rows.count_in(vector) <= SINGLE_ROWS_MAX => self.filter_singles(vector, ranges, rows),
                _ => {
                    let buffer = buffer.get_or_insert_with(LanesBuffer::new);
                    let mask = self.mask(vector, ranges, buffer);
                    rows.and_vector(vector, &mask);
                }
            }
        }
    }

    /// What a vector's bounds say.
    fn zone(&self, entry: &Entry, rows: usize, ranges: &Ranges) -> Zone {
        if usize::from(entry.nulls) == rows { Zone::None } else { ranges.zone(entry.min, entry.max) }
    }

    fn filter_singles(&self, vector: usize, ranges: &Ranges, rows: &mut RowSet) {
        for row in positions(&rows.vector(vector).clone()) {
            let row = vector * VECTOR_ROWS + row;
            if !self.key(row).is_some_and(|key| ranges.contains(key)) {
                rows.remove(row);
            }
        }
    }

    fn filter_runs(&self, runs: &Runs, ranges: &Ranges, rows: &mut RowSet) {
        let zones = || {
            self.head().entries.iter().enumerate().map(|(v, entry)| self.zone(entry, self.head().rows_in(v), ranges))
        };
        if zones().all(|zone| zone == Zone::None) {
            return rows.clear();
        }
        if self.head().nulls == 0 && zones().all(|zone| zone == Zone::All) {
            return;
        }
        let mut passing = RowSet::all(runs.len());
        runs.values.filter_keys(ranges, &mut passing);
        // Neighbours that fail are taken away at once.
        let (mut start, mut run) = (0, 0);
        for passes in passing.iter() {
            if run < passes {
                rows.remove_range(start..runs.end(passes));
            }
            run = passes + 1;
            start = runs.end(run);
        }
        rows.remove_range(start..self.head().rows);
    }

    /// The rows of a vector whose key lies in ranges.
    fn mask(&self, vector: usize, ranges: &Ranges, buffer: &mut LanesBuffer) -> Mask {
        let entry = &self.head().entries[vector];
        match self.body() {
            Body::Constant | Body::Runs(_) => Mask::default(),
            Body::Packed(packed) => {
                let codes = self.codes(entry, ranges);
                let mut mask = with_narrow!(self.head().width, buffer, lanes => {
                    packed_mask(packed, vector, self.head().width, &codes, lanes)
                });
                for (row, value) in packed.patches(entry.patches()) {
                    let bit = 1 << (row % 64);
                    mask[row / 64] = mask[row / 64] & !bit | if ranges.contains(value) { bit } else { 0 };
                }
                mask
            }
            Body::Plain(plain) => {
                buffer
                    .u64
                    .iter_mut()
                    .zip(plain.values(vector))
                    .for_each(|(lane, bytes)| *lane = u64::from_le_bytes(*bytes));
                let mut mask = Mask::default();
                for (low, high) in ranges.as_slice() {
                    or(&mut mask, &Kernels::get().between(&buffer.u64, *low as u64, high.wrapping_sub(*low) as u64));
                }
                for (word, bits) in mask.iter_mut().zip(self.validity(vector, buffer)) {
                    *word &= bits;
                }
                mask
            }
        }
    }

    /// Ranges of keys as ranges of a vector's packed offsets, without the one that is NULL.
    fn codes(&self, entry: &Entry, ranges: &Ranges) -> Vec<(u64, u64)> {
        let least = i128::from(self.head().null_is_zero);
        let greatest = (1_i128 << self.head().width) - 1;
        let base = i128::from(entry.base);
        let clipped = ranges
            .as_slice()
            .iter()
            .map(|(low, high)| ((i128::from(*low) - base).max(least), (i128::from(*high) - base).min(greatest)));
        clipped.filter(|(low, high)| low <= high).map(|(low, high)| (low as u64, high as u64)).collect()
    }

    /// 128-bit integers that have no keys.
    pub(super) fn filter_wide(&self, condition: &Condition<i128>, rows: &mut RowSet) {
        let Body::Plain(plain) = self.body() else { return };
        for vector in 0..self.head().vectors() {
            let mut mask = Mask::default();
            let validity = plain.validity(vector);
            let values: &[[u8; 16]] = plain.values(vector);
            for row in positions(rows.vector(vector)) {
                let is_valid = validity[row / 64] >> (row % 64) & 1 == 1;
                let value = i128::from_le_bytes(array(&values[row], 0));
                mask[row / 64] |= u64::from(is_valid && holds(condition, Some(&value))) << (row % 64);
            }
            rows.and_vector(vector, &mask);
        }
    }
}

/// The rows of a vector whose packed offset lies in ranges.
fn packed_mask<T: Lane>(
    packed: &Packed,
    vector: usize,
    width: u8,
    codes: &[(u64, u64)],
    lanes: &mut [T; VECTOR_ROWS],
) -> Mask {
    let mut mask = Mask::default();
    let (Some((low, _)), Some((_, high))) = (codes.first(), codes.last()) else { return mask };
    let kernels = Kernels::get();
    unpack(packed, vector, width, lanes);
    let between = |lanes: &[T; VECTOR_ROWS], low: u64, high: u64| {
        kernels.between(lanes, T::truncate(low), T::truncate(high - low))
    };
    if codes.len() <= COMPARED_RANGES_MAX {
        for (low, high) in codes {
            or(&mut mask, &between(lanes, *low, *high));
        }
        return mask;
    }
    if *high < TABLE_WORDS_MAX * 64 {
        return kernels.lookup(lanes, &table(codes, *high));
    }
    for row in positions(&between(lanes, *low, *high)) {
        let code = lanes[row].extend();
        let next = codes.partition_point(|(_, high)| *high < code);
        let is_in = codes.get(next).is_some_and(|(low, _)| *low <= code);
        mask[row / 64] |= u64::from(is_in) << (row % 64);
    }
    mask
}

/// One bit for each number up to `greatest`.
fn table(ranges: &[(u64, u64)], greatest: u64) -> Vec<u64> {
    let mut table = vec![0; greatest as usize / 64 + 1];
    for (low, high) in ranges {
        for code in *low..=*high {
            table[code as usize / 64] |= 1 << (code % 64);
        }
    }
    table
}

fn or(mask: &mut Mask, other: &Mask) {
    for (word, bits) in mask.iter_mut().zip(other) {
        *word |= bits;
    }
}
