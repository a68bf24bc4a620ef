//! Ranges of keys on blocks of each encoding with keys.

use crate::block_body::{Body, Packed, Plain, Runs};
use crate::block_header::{lane_bits, read_array};
use crate::compare::condition_ranges::condition_matches;
use crate::compare::range_filter::{RangeFilter, and_into, or_into};
use crate::kernels::{Kernels, Lane};
use crate::key_ranges::PruneResult;
use crate::row_set::positions;
use crate::{Block, Condition, KeyRanges, Mask, RowSet, VECTOR_ROWS, VectorHeader};

/// Maximum number of remaining rows of a vector for which single rows are unpacked.
const ROW_BY_ROW_MAX: usize = 12;

/// Lanes aligned for vector instructions.
#[repr(align(64))]
struct AlignedLanes<T>([T; VECTOR_ROWS]);

impl Block {
    /// Removes the rows whose key lies in none of the ranges.
    pub(super) fn filter_keys(&self, ranges: &KeyRanges, rows: &mut RowSet) {
        debug_assert_eq!(rows.rows(), self.header().rows, "the row set must be over the block's rows");
        match self.body() {
            Body::Runs(runs) => self.filter_runs(runs, ranges, rows),
            Body::Packed(packed) => match lane_bits(self.header().width) {
                8 => self.filter_packed::<u8>(packed, ranges, rows),
                16 => self.filter_packed::<u16>(packed, ranges, rows),
                32 => self.filter_packed::<u32>(packed, ranges, rows),
                _ => self.filter_packed::<u64>(packed, ranges, rows),
            },
            Body::Plain(plain) => self.filter_plain(plain, ranges, rows),
            Body::Constant | Body::Heap(_) => self.filter_vectors(ranges, rows, |_, rows| *rows = Mask::default()),
        }
    }

    /// Evaluates the bounds of each vector and single rows; calls `filter` for the vectors that must be unpacked.
    fn filter_vectors(&self, ranges: &KeyRanges, rows: &mut RowSet, mut filter: impl FnMut(usize, &mut Mask)) {
        for (vector, entry) in self.header().vector_headers.iter().enumerate() {
            if rows.is_empty_in_vector(vector) {
                continue;
            }
            match self.prune_vector(entry, self.header().rows_in_vector(vector), ranges) {
                PruneResult::None => rows.clear_vector(vector),
                PruneResult::All if entry.null_count == 0 => {}
                _ if rows.has_at_most_in_vector(vector, ROW_BY_ROW_MAX) => self.filter_row_by_row(vector, ranges, rows),
                _ => {
                    let ahead = self.prefetch_target(vector);
                    if ahead < rows.vectors() && !rows.is_empty_in_vector(ahead) {
                        self.prefetch(ahead);
                    }
                    filter(vector, rows.vector_mut(vector));
                }
            }
        }
    }

    fn filter_packed<T: Lane>(&self, packed: &Packed, ranges: &KeyRanges, rows: &mut RowSet) {
        let search = RangeFilter::new(self, ranges);
        let mut lanes = AlignedLanes([T::default(); VECTOR_ROWS]);
        self.filter_vectors(ranges, rows, |vector, rows| {
            let entry = &self.header().vector_headers[vector];
            if entry.patch_count == 0 {
                return search.remove_rows_outside(packed, vector, &mut lanes.0, rows);
            }
            // The packed offsets of patches are undefined.
            let before = *rows;
            search.remove_rows_outside(packed, vector, &mut lanes.0, rows);
            for (row, key) in packed.patches(entry.patches()) {
                let bit = 1 << (row % 64);
                let passes = if ranges.contains(key) { bit } else { 0 };
                rows[row / 64] = rows[row / 64] & !bit | before[row / 64] & passes;
            }
        });
    }

    fn filter_plain(&self, plain: &Plain, ranges: &KeyRanges, rows: &mut RowSet) {
        let mut keys = AlignedLanes([0; VECTOR_ROWS]);
        self.filter_vectors(ranges, rows, |vector, rows| {
            for (key, bytes) in keys.0.iter_mut().zip(plain.values(vector)) {
                *key = u64::from_le_bytes(*bytes);
            }
            let mut mask = Mask::default();
            for (low, high) in ranges.as_slice() {
                or_into(&mut mask, &Kernels::get().mask_between(&keys.0, *low as u64, high.wrapping_sub(*low) as u64));
            }
            and_into(rows, &mask);
            and_into(rows, &plain.validity(vector));
        });
    }

    /// Evaluates the ranges against a vector's bounds.
    fn prune_vector(&self, entry: &VectorHeader, rows: usize, ranges: &KeyRanges) -> PruneResult {
        if usize::from(entry.null_count) == rows { PruneResult::None } else { ranges.prune(entry.min, entry.max) }
    }

    /// Evaluates the ranges on the remaining rows of a vector one by one.
    fn filter_row_by_row(&self, vector: usize, ranges: &KeyRanges, rows: &mut RowSet) {
        let mut mask = Mask::default();
        self.for_each_row(vector, positions(rows.vector(vector)), |row, key| {
            let passes = key.is_some_and(|key| ranges.contains(key));
            mask[row / 64] |= u64::from(passes) << (row % 64);
        });
        rows.retain_in_vector(vector, &mask);
    }

    fn filter_runs(&self, runs: &Runs, ranges: &KeyRanges, rows: &mut RowSet) {
        let zones = || {
            self.header()
                .vector_headers
                .iter()
                .enumerate()
                .map(|(v, entry)| self.prune_vector(entry, self.header().rows_in_vector(v), ranges))
        };
        if zones().all(|zone| zone == PruneResult::None) {
            return rows.clear();
        }
        if self.header().null_count == 0 && zones().all(|zone| zone == PruneResult::All) {
            return;
        }
        let mut passing = RowSet::all(runs.len());
        runs.values.filter_keys(ranges, &mut passing);
        // Adjacent runs that do not match are removed together.
        let (mut start, mut run) = (0, 0);
        for passes in passing.iter() {
            if run < passes {
                rows.remove_range(start..runs.end(passes));
            }
            run = passes + 1;
            start = runs.end(run);
        }
        rows.remove_range(start..self.header().rows);
    }

    /// Evaluates a condition on plain 128-bit integers, which have no keys.
    pub(super) fn filter_int128(&self, condition: &Condition<i128>, rows: &mut RowSet) {
        let Body::Plain(plain) = self.body() else { return };
        for vector in 0..self.header().vector_count() {
            let mut mask = Mask::default();
            let validity = plain.validity(vector);
            let values: &[[u8; 16]] = plain.values(vector);
            for row in positions(rows.vector(vector)) {
                let is_valid = validity[row / 64] >> (row % 64) & 1 == 1;
                let value = i128::from_le_bytes(read_array(&values[row], 0));
                mask[row / 64] |= u64::from(is_valid && condition_matches(condition, Some(&value))) << (row % 64);
            }
            rows.retain_in_vector(vector, &mask);
        }
    }
}
