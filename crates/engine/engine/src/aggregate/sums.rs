//! Loops that add the rows of a batch to counts and sums of their groups.

use std::cell::OnceCell;

use blocks::kernels::Kernels;

use super::aggregate_state::for_each_counted_row;
use crate::{Bitmap, Bounds, Error, Result};

/// Maximum number of groups whose sums are replicated, so that an addition does not wait for the previous one.
const REPLICATED_GROUPS_MAX: usize = 64;
const REPLICAS: usize = 4;
/// Maximum number of groups for the vectorized kernel, which scans all values once for each group.
const KERNEL_GROUPS: usize = 8;
/// Bound on the absolute sum of a batch below which it is added up in 64 bits.
const BATCH_SUM_MAX: i128 = 1 << 62;

/// Creates the error of an overflowing sum (22003).
pub(crate) fn numeric_overflow() -> Error {
    Error::out_of_range("numeric field overflow")
}

/// Adds a float to a sum.
///
/// # Errors
/// 22003 where finite numbers add up to infinity, as PostgreSQL's `float8pl`.
#[inline]
pub(crate) fn checked_float_add(sum: f64, value: f64) -> Result<f64> {
    let total = sum + value;
    if total.is_infinite() && are_finite(sum, value) { Err(float_overflow()) } else { Ok(total) }
}

/// Returns whether both operands are finite. Called for infinite totals only, which are rare.
#[cold]
fn are_finite(sum: f64, value: f64) -> bool {
    sum.is_finite() && value.is_finite()
}

fn float_overflow() -> Error {
    Error::out_of_range("value out of range: overflow")
}

/// Group of each row of a batch.
pub(super) struct RowGroups<'a> {
    pub(super) groups: &'a [u32],
    /// Number of rows of each group, computed at most once for all COUNT states; only if there are at most
    /// [`REPLICATED_GROUPS_MAX`] groups.
    row_counts: OnceCell<[i64; REPLICATED_GROUPS_MAX]>,
}

impl<'a> RowGroups<'a> {
    pub(super) fn new(groups: &'a [u32]) -> Self {
        Self { groups, row_counts: OnceCell::new() }
    }

    fn row_counts(&self) -> &[i64; REPLICATED_GROUPS_MAX] {
        self.row_counts.get_or_init(|| {
            let mut parts = [[0_i64; REPLICAS]; REPLICATED_GROUPS_MAX];
            let chunks = self.groups.chunks_exact(REPLICAS);
            chunks.remainder().iter().for_each(|group| parts[*group as usize % REPLICATED_GROUPS_MAX][0] += 1);
            for chunk in chunks {
                for (replica, group) in chunk.iter().enumerate() {
                    parts[*group as usize % REPLICATED_GROUPS_MAX][replica] += 1;
                }
            }
            parts.map(|parts| parts.iter().sum())
        })
    }
}

/// Adds the rows of each group to its count.
pub(super) fn add_counts(totals: &mut [i64], rows: &RowGroups<'_>, counted: Option<&Bitmap>) {
    let groups = rows.groups;
    if let (None, [total]) = (counted, &mut *totals) {
        *total += i64::try_from(groups.len()).expect("a batch has fewer than 2^63 rows");
        return;
    }
    if totals.len() <= REPLICATED_GROUPS_MAX && counted.is_none() {
        totals.iter_mut().zip(rows.row_counts()).for_each(|(total, count)| *total += count);
        return;
    }
    for_each_counted_row(counted, groups.len(), |row| totals[groups[row] as usize] += 1);
}

/// Adds integers to the sums of their groups.
pub(super) fn add_ints(
    sums: &mut [i128],
    groups: &[u32],
    values: &[i64],
    bounds: Bounds,
    counted: Option<&Bitmap>,
) -> Result<()> {
    let rows = groups.len() as i128;
    let is_small = bounds.min.abs().max(bounds.max.abs()) < BATCH_SUM_MAX / rows.max(1);
    if let (None, [sum]) = (counted, &mut *sums)
        && is_small
    {
        return add_to_sum(sum, values.iter().sum::<i64>().into());
    }
    if is_small && sums.len() <= KERNEL_GROUPS && counted.is_none() {
        let mut parts = [0; KERNEL_GROUPS];
        Kernels::get().add_to_sums(values, groups, sums.len() <= KERNEL_GROUPS / 2, &mut parts);
        return sums.iter_mut().zip(parts).try_for_each(|(sum, part)| add_to_sum(sum, part.into()));
    }
    if is_small && sums.len() <= REPLICATED_GROUPS_MAX && counted.is_none() {
        let mut parts = [[0_i64; REPLICAS]; REPLICATED_GROUPS_MAX];
        let (group_chunks, value_chunks) = (groups.chunks_exact(REPLICAS), values.chunks_exact(REPLICAS));
        for (group, value) in group_chunks.remainder().iter().zip(value_chunks.remainder()) {
            parts[*group as usize % REPLICATED_GROUPS_MAX][0] += value;
        }
        for (groups, values) in group_chunks.zip(value_chunks) {
            for (replica, (group, value)) in groups.iter().zip(values).enumerate() {
                parts[*group as usize % REPLICATED_GROUPS_MAX][replica] += value;
            }
        }
        return sums
            .iter_mut()
            .zip(&parts)
            .try_for_each(|(sum, parts)| add_to_sum(sum, parts.iter().sum::<i64>().into()));
    }
    add_each(sums, groups, counted, |row| values[row].into())
}

/// Adds 128-bit integers to the sums of their groups.
pub(super) fn add_wide(sums: &mut [i128], groups: &[u32], values: &[i128], counted: Option<&Bitmap>) -> Result<()> {
    add_each(sums, groups, counted, |row| values[row])
}

fn add_each(sums: &mut [i128], groups: &[u32], counted: Option<&Bitmap>, value: impl Fn(usize) -> i128) -> Result<()> {
    let mut is_beyond = false;
    for_each_counted_row(counted, groups.len(), |row| {
        let sum = &mut sums[groups[row] as usize];
        let (total, overflows) = sum.overflowing_add(value(row));
        *sum = total;
        is_beyond |= overflows;
    });
    if is_beyond { Err(numeric_overflow()) } else { Ok(()) }
}

/// Adds floats to the sums of their groups, in row order.
pub(super) fn add_floats(sums: &mut [f64], groups: &[u32], values: &[f64], counted: Option<&Bitmap>) -> Result<()> {
    let mut is_beyond = false;
    for_each_counted_row(counted, groups.len(), |row| {
        let (sum, value) = (&mut sums[groups[row] as usize], values[row]);
        let total = *sum + value;
        if total.is_infinite() {
            is_beyond |= are_finite(*sum, value);
        }
        *sum = total;
    });
    if is_beyond { Err(float_overflow()) } else { Ok(()) }
}

fn add_to_sum(sum: &mut i128, value: i128) -> Result<()> {
    *sum = sum.checked_add(value).ok_or_else(numeric_overflow)?;
    Ok(())
}
