//! Ranges of keys against every scheme that has keys.

use std::cell::LazyCell;

use crate::body::{Body, Packed, Runs};
use crate::compare::lower::holds;
use crate::compare::table::{Table, verified};
use crate::decode::{LanesBuffer, unpack};
use crate::format::array;
use crate::kernels::{Kernels, Lane};
use crate::ranges::Zone;
use crate::row_set::positions;
use crate::{Block, Condition, Entry, Mask, Ranges, RowSet, VECTOR_ROWS};

/// A vector of which so few rows are left is not unpacked.
const SINGLE_ROWS_MAX: usize = 12;
/// Ranges that are compared one after the other in the time of a table's lookup, by lanes' bits: 8, 16, 32, 64.
const COMPARED_RANGES_MAX: [usize; 4] = [12, 8, 5, 3];

impl Block {
    /// Keeps the rows whose key lies in ranges.
    pub(super) fn filter_keys(&self, ranges: &Ranges, rows: &mut RowSet) {
        debug_assert_eq!(rows.rows(), self.head().rows, "a set of this block's rows");
        if let Body::Runs(runs) = self.body() {
            return self.filter_runs(runs, ranges, rows);
        }
        let mut buffer = None;
        let table = LazyTable::new(Box::new(|| Table::new(ranges)));
        for (vector, entry) in self.head().entries.iter().enumerate() {
            if rows.is_empty_in(vector) {
                continue;
            }
            match self.zone(entry, self.head().rows_in(vector), ranges) {
                Zone::None => rows.clear_vector(vector),
                Zone::All if entry.nulls == 0 => {}
                _ if rows.has_few_in(vector, SINGLE_ROWS_MAX) => self.filter_singles(vector, ranges, rows),
                _ => {
                    let buffer = buffer.get_or_insert_with(LanesBuffer::new);
                    if vector + 1 < rows.vectors() && !rows.is_empty_in(vector + 1) {
                        self.prefetch(vector + 1);
                    }
                    let mask = self.mask(vector, ranges, &table, buffer);
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
    fn mask(&self, vector: usize, ranges: &Ranges, table: &LazyTable<'_>, buffer: &mut LanesBuffer) -> Mask {
        let entry = &self.head().entries[vector];
        match self.body() {
            Body::Constant | Body::Runs(_) => Mask::default(),
            Body::Packed(packed) => {
                let mut mask = with_narrow!(self.head().width, buffer, lanes => {
                    self.packed_mask(packed, vector, ranges, table, lanes)
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

    /// The rows of a vector whose packed offset lies in ranges.
    fn packed_mask<T: Lane>(
        &self,
        packed: &Packed,
        vector: usize,
        ranges: &Ranges,
        table: &LazyTable<'_>,
        lanes: &mut [T; VECTOR_ROWS],
    ) -> Mask {
        let entry = &self.head().entries[vector];
        let clipped = ranges.within(entry.min, entry.max);
        let mut mask = Mask::default();
        let (Some((low, _)), Some((_, high))) = (clipped.first(), clipped.last()) else { return mask };
        let Some((low, high)) = self.codes(entry.base, *low, *high) else { return mask };
        unpack(packed, vector, self.head().width, lanes);
        if COMPARED_RANGES_MAX[T::BITS.ilog2() as usize - 3] < clipped.len() {
            return match &**table {
                Some(table) => table.mask(lanes, entry.base, (low, high), ranges),
                None => verified(&between(lanes, low, high), lanes, entry.base, ranges),
            };
        }
        for (low, high) in clipped {
            if let Some((low, high)) = self.codes(entry.base, *low, *high) {
                or(&mut mask, &between(lanes, low, high));
            }
        }
        mask
    }

    /// A range of keys as one of packed offsets, without the one that is NULL.
    fn codes(&self, base: i64, low: i64, high: i64) -> Option<(u64, u64)> {
        let least = u64::from(self.head().null_is_zero);
        let greatest = if self.head().width == 64 { u64::MAX } else { (1 << self.head().width) - 1 };
        let low = if low <= base { least } else { least.max(low.wrapping_sub(base) as u64) };
        let high = if high < base { return None } else { greatest.min(high.wrapping_sub(base) as u64) };
        (low <= high).then_some((low, high))
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

/// Made when a vector first asks for it.
type LazyTable<'a> = LazyCell<Option<Table>, Box<dyn Fn() -> Option<Table> + 'a>>;

fn between<T: Lane>(lanes: &[T; VECTOR_ROWS], low: u64, high: u64) -> Mask {
    Kernels::get().between(lanes, T::truncate(low), T::truncate(high - low))
}

fn or(mask: &mut Mask, other: &Mask) {
    for (word, bits) in mask.iter_mut().zip(other) {
        *word |= bits;
    }
}
