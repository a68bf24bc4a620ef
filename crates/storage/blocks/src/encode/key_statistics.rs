//! Statistics of a block's keys, by which the encoding is chosen.

use std::ops::Range;

use crate::encode::choose_encoding::EncodingPlan;
use crate::encode::column_keys::Keys;
use crate::kernels::Kernels;
use crate::{Mask, VECTOR_ROWS, VectorHeader};

/// Sampling interval of the first estimate of patches.
const SAMPLE_INTERVAL: usize = 16;
/// Number of widths for which patches are counted exactly: the best one of the sample and the next wider ones.
const COUNTED_WIDTHS: u8 = 3;

/// Statistics of the keys of a block.
#[derive(Debug, Clone)]
pub(crate) struct KeyStatistics {
    pub(crate) rows: usize,
    pub(crate) null_count: usize,
    /// Minimum and maximum key; `None` if every row is NULL.
    pub(crate) bounds: Option<(i64, i64)>,
    /// Approximate number of runs of equal keys or of NULLs.
    pub(crate) run_count: usize,
    /// Bits of the greatest offset of a key from its vector's base; `None` if it exceeds 64 bits.
    pub(crate) width: Option<u8>,
    /// Number of keys that do not fit a width, by width; only for widths that may pay off.
    pub(crate) patch_counts: Vec<(u8, usize)>,
    /// Headers of the vectors with base, bounds and NULLs.
    pub(crate) vector_headers: Vec<VectorHeader>,
}

impl KeyStatistics {
    pub(crate) fn from_keys(keys: &Keys<'_>) -> Self {
        let kernels = Kernels::get();
        let mut vector_headers = Vec::with_capacity(crate::BLOCK_VECTORS);
        let (mut bounds, mut width): (Option<(i64, i64)>, _) = (None, Some(0));
        let has_nulls = keys.null_count() != 0;
        for (values, mask) in keys.vectors() {
            let valid: usize = mask.iter().map(|word| word.count_ones() as usize).sum();
            let nulls = (values.len() - valid) as u16;
            if valid == 0 {
                vector_headers.push(VectorHeader { null_count: nulls, ..VectorHeader::default() });
                continue;
            }
            let (min, max) = kernels.min_max(values);
            bounds = Some(bounds.map_or((min, max), |(least, greatest)| (least.min(min), greatest.max(max))));
            let base = if has_nulls { min.checked_sub(1) } else { Some(min) };
            let bits = base.and_then(|base| u64::try_from(i128::from(max) - i128::from(base)).ok()).map(bits_of);
            width = width.zip(bits).map(|(width, bits)| width.max(bits));
            vector_headers.push(VectorHeader {
                base: base.unwrap_or(min),
                min,
                max,
                null_count: nulls,
                ..VectorHeader::default()
            });
        }
        let mut statistics = Self {
            rows: keys.rows(),
            null_count: keys.null_count(),
            bounds,
            run_count: count_runs(keys),
            width,
            patch_counts: Vec::new(),
            vector_headers,
        };
        statistics.patch_counts = statistics.count_patches(keys);
        statistics
    }

    /// Counts the patches for the widths that are best according to a sample.
    fn count_patches(&self, keys: &Keys<'_>) -> Vec<(u8, usize)> {
        let Some(width) = self.width else { return Vec::new() };
        let sample = Self {
            patch_counts: self.estimate_patches(keys, width),
            vector_headers: self.vector_headers.clone(),
            ..*self
        };
        match sample.packed_plan() {
            Some(EncodingPlan::Packed { width: patched }) if patched < width => {
                let counted = patched..width.min(patched + COUNTED_WIDTHS);
                counted.clone().zip(self.count_patches_exactly(keys, counted)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Estimates from a sample how many keys do not fit each width.
    fn estimate_patches(&self, keys: &Keys<'_>, width: u8) -> Vec<(u8, usize)> {
        let mut histogram = [0; 65];
        for ((values, _), entry) in self.vectors(keys) {
            for value in values.iter().step_by(SAMPLE_INTERVAL) {
                histogram[usize::from(bits_of(value.wrapping_sub(entry.base) as u64))] += SAMPLE_INTERVAL;
            }
        }
        (0..width).map(|width| (width, histogram[usize::from(width) + 1..].iter().sum())).collect()
    }

    /// Counts the keys that do not fit each width.
    fn count_patches_exactly(&self, keys: &Keys<'_>, widths: Range<u8>) -> Vec<usize> {
        let kernels = Kernels::get();
        let mut beyond = vec![0; widths.len()];
        let mut lanes = [0_u64; VECTOR_ROWS];
        for ((values, _), entry) in self.vectors(keys) {
            let mut padded = [entry.base; VECTOR_ROWS];
            padded[..values.len()].copy_from_slice(values);
            kernels.narrow(&padded, entry.base, &mut lanes);
            for (beyond, width) in beyond.iter_mut().zip(widths.clone()) {
                let mask = kernels.mask_between(&lanes, 1 << width, u64::MAX - (1 << width));
                *beyond += mask.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            }
        }
        beyond
    }

    /// Iterates over the vectors that have values.
    fn vectors<'a>(&'a self, keys: &'a Keys<'_>) -> impl Iterator<Item = ((&'a [i64], Mask), &'a VectorHeader)> {
        keys.vectors()
            .zip(&self.vector_headers)
            .filter(|((values, _), entry)| usize::from(entry.null_count) < values.len())
    }
}

/// Returns the number of bits of a number.
pub(crate) fn bits_of(number: u64) -> u8 {
    (u64::BITS - number.leading_zeros()) as u8
}

/// Returns the approximate number of runs of equal keys or of NULLs; it is inexact where NULLs begin or end.
fn count_runs(keys: &Keys<'_>) -> usize {
    if keys.rows() == 0 {
        return 0;
    }
    let borders = keys.validity().map_or(0, |masks| {
        let inside = masks.iter().flatten().map(|word| (word ^ word >> 1) & (u64::MAX >> 1));
        inside.map(|borders| borders.count_ones() as usize).sum::<usize>()
    });
    1 + Kernels::get().count_changes(keys.values()) + borders
}
