//! Ranges of keys against every scheme that has keys.

use crate::body::{Body, Runs};
use crate::compare::lower::holds;
use crate::compare::search::{Search, and, or};
use crate::decode::LanesBuffer;
use crate::format::array;
use crate::kernels::Kernels;
use crate::ranges::Zone;
use crate::row_set::positions;
use crate::{Block, Condition, Entry, Mask, Ranges, RowSet};

/// A vector of which so few rows are left is not unpacked.
const SINGLE_ROWS_MAX: usize = 12;

impl Block {
    /// Keeps the rows whose key lies in ranges.
    pub(super) fn filter_keys(&self, ranges: &Ranges, rows: &mut RowSet) {
        debug_assert_eq!(rows.rows(), self.head().rows, "a set of this block's rows");
        if let Body::Runs(runs) = self.body() {
            return self.filter_runs(runs, ranges, rows);
        }
        let mut buffer = None;
        let search = Search::new(self, ranges);
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
                    let ahead = self.ahead_of(vector);
                    if ahead < rows.vectors() && !rows.is_empty_in(ahead) {
                        self.prefetch(ahead);
                    }
                    self.filter_vector(vector, &search, buffer, rows.vector_mut(vector));
                }
            }
        }
    }

    /// What a vector's bounds say.
    fn zone(&self, entry: &Entry, rows: usize, ranges: &Ranges) -> Zone {
        if usize::from(entry.nulls) == rows { Zone::None } else { ranges.zone(entry.min, entry.max) }
    }

    fn filter_singles(&self, vector: usize, ranges: &Ranges, rows: &mut RowSet) {
        let mut mask = Mask::default();
        self.for_singles(vector, positions(rows.vector(vector)), |row, key| {
            let passes = key.is_some_and(|key| ranges.contains(key));
            mask[row / 64] |= u64::from(passes) << (row % 64);
        });
        rows.and_vector(vector, &mask);
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

    /// Keeps the rows of a vector whose key lies in ranges.
    fn filter_vector(&self, vector: usize, search: &Search<'_>, buffer: &mut LanesBuffer, rows: &mut Mask) {
        let entry = &self.head().entries[vector];
        match self.body() {
            Body::Constant | Body::Runs(_) | Body::Heap(_) => *rows = Mask::default(),
            Body::Packed(packed) => {
                // What stands in a patch's place is anything.
                let patched = (entry.patches != 0).then_some(*rows);
                with_narrow!(self.head().width, buffer, lanes => search.retain(packed, vector, lanes, rows));
                let Some(before) = patched else { return };
                for (row, key) in packed.patches(entry.patches()) {
                    let bit = 1 << (row % 64);
                    let passes = if search.keys.contains(key) { bit } else { 0 };
                    rows[row / 64] = rows[row / 64] & !bit | before[row / 64] & passes;
                }
            }
            Body::Plain(plain) => {
                let keys = buffer.u64.iter_mut().zip(plain.values(vector));
                keys.for_each(|(lane, bytes)| *lane = u64::from_le_bytes(*bytes));
                let mut mask = Mask::default();
                for (low, high) in search.keys.as_slice() {
                    or(&mut mask, &Kernels::get().between(&buffer.u64, *low as u64, high.wrapping_sub(*low) as u64));
                }
                and(rows, &mask);
                and(rows, &self.validity(vector, buffer));
            }
        }
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
