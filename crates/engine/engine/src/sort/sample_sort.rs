//! Sample sort: rows, as numbers of packed keys, are divided into consecutive buckets, which are sorted independently
//! in parallel.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use super::packed_keys::{PackedKeys, ROW_BITS};
use super::{SortCollector, SortKey, SortSpec, SortedRows, compare};
use crate::vector::concat;
use crate::{BATCH_ROWS, Column, Error, NONE, Result};

/// Approximate number of rows in a bucket.
const BUCKET_ROWS: usize = 1 << 15;
/// Maximum number of buckets; more would cost more than they save.
const BUCKETS_MAX: usize = 1 << 10;
/// Rows sampled for each bucket to find the splitters between buckets.
const SAMPLES_PER_BUCKET: usize = 16;

/// Parallel sort of all workers' rows: the caller scatters shares of the rows to buckets, then sorts each bucket.
#[derive(Debug)]
pub struct Sorter {
    spec: Arc<SortSpec>,
    rows: usize,
    columns: Vec<Column>,
    packed: PackedKeys,
    /// Splitters: lower bound of each bucket but the first.
    splitters: Vec<u128>,
}

/// Packed numbers of a share of the rows, by bucket.
#[derive(Debug)]
pub struct ScatteredRows(Vec<Vec<u128>>);

impl Sorter {
    /// Concatenates the rows that the workers have collected and chooses the splitters.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for 2^32 rows or more.
    pub fn new(spec: &Arc<SortSpec>, mut parts: Vec<SortCollector>) -> Result<Self> {
        let rows = parts.iter().map(SortCollector::rows).sum();
        if !Self::can_sort(rows) {
            return Err(Error::OutOfMemory("2^32 rows to sort"));
        }
        let column = |(position, form)| {
            concat(parts.iter_mut().flat_map(|part: &mut SortCollector| part.take_column(position)).collect(), form)
        };
        let columns = spec.column_types.iter().copied().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        drop(parts);
        let packed = PackedKeys::new(&spec.keys, &columns)?;
        let mut sorter = Self { spec: Arc::clone(spec), rows, columns, packed, splitters: Vec::new() };
        sorter.splitters = sorter.sample_splitters();
        Ok(sorter)
    }

    /// Returns the approximate memory that sorting needs beside the collected rows, in bytes. One column exists twice
    /// while it is concatenated; then the rows' numbers exist twice.
    #[must_use]
    pub fn sort_memory_bytes<'a>(parts: impl Iterator<Item = &'a SortCollector>) -> usize {
        parts
            .map(|part| {
                let spec = part.spec();
                let functions = spec.windows.as_ref().map_or(0, |windows| windows.functions.len());
                let of_row = 3 * size_of::<u128>() + 2 * size_of::<u32>() + 2 * functions * size_of::<i128>();
                part.memory_bytes().div_ceil(spec.column_types.len().max(1)) + part.rows() * of_row
            })
            .sum()
    }

    /// Returns whether so many rows can be sorted together: row numbers have 32 bits.
    #[must_use]
    pub fn can_sort(rows: usize) -> bool {
        u32::try_from(rows).is_ok()
    }

    /// Returns whether rows stay in arrival order, as there are no keys.
    #[must_use]
    pub fn keeps_arrival_order(&self) -> bool {
        self.spec.keys.is_empty()
    }

    /// Returns the number of shares of the rows that can be scattered in parallel.
    #[must_use]
    pub fn shares(&self) -> usize {
        self.rows.div_ceil(4 * BUCKET_ROWS)
    }

    /// Returns the number of buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.splitters.len() + 1
    }

    /// Scatters a share of the rows to the buckets.
    #[must_use]
    pub fn scatter(&self, share: usize) -> ScatteredRows {
        let (start, end) = (share * 4 * BUCKET_ROWS, self.rows.min((share + 1) * 4 * BUCKET_ROWS));
        let mut buckets = vec![Vec::new(); self.buckets()];
        for first in (start..end).step_by(BATCH_ROWS) {
            for number in self.packed.pack(&self.columns, first..end.min(first + BATCH_ROWS)) {
                let bucket = self.splitters.partition_point(|border| self.compare(border, &number).is_le());
                buckets[bucket].push(number);
            }
        }
        ScatteredRows(buckets)
    }

    /// Sorts a bucket and returns its rows in order. `shares` must be all shares.
    #[must_use]
    pub fn sort_bucket(&self, bucket: usize, shares: &[ScatteredRows]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(shares.iter().map(|ScatteredRows(buckets)| buckets[bucket].len()).sum());
        shares.iter().for_each(|ScatteredRows(buckets)| numbers.extend_from_slice(&buckets[bucket]));
        if self.undecided_keys().is_empty() {
            numbers.sort_unstable();
        } else {
            numbers.sort_unstable_by(|x, y| self.compare(x, y));
        }
        numbers.into_iter().map(row_of).collect()
    }

    /// Returns the sorted rows, given the rows of each bucket in order.
    #[must_use]
    pub fn into_sorted(self, buckets: &[Vec<u32>]) -> SortedRows {
        let mut order = if self.keeps_arrival_order() { None } else { Some(buckets.concat()) };
        let rows = self.spec.fetch.unwrap_or(self.rows).min(self.rows);
        if let Some(order) = &mut order {
            order.truncate(rows);
            order.shrink_to_fit();
        }
        SortedRows::new(self.spec, rows, self.columns, order)
    }

    /// Sorts the rows on the calling thread alone.
    ///
    /// # Errors
    /// [`Error::Stopped`] once `stop` is set.
    pub fn sort(self, stop: &AtomicBool) -> Result<SortedRows> {
        if self.keeps_arrival_order() {
            return Ok(self.into_sorted(&[]));
        }
        let unless_stopped = || if stop.load(atomic::Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) };
        let share = |share| unless_stopped().map(|()| self.scatter(share));
        let shares = (0..self.shares()).map(share).collect::<Result<Vec<ScatteredRows>>>()?;
        let bucket = |bucket| unless_stopped().map(|()| self.sort_bucket(bucket, &shares));
        let buckets = (0..self.buckets()).map(bucket).collect::<Result<Vec<Vec<u32>>>>()?;
        Ok(self.into_sorted(&buckets))
    }

    /// Returns the approximate memory use in bytes, including the rows' numbers.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let functions = self.spec.windows.as_ref().map_or(0, |windows| windows.functions.len());
        let of_row = (3 + 2 * functions) * size_of::<u128>();
        self.columns.iter().map(Column::memory_bytes).sum::<usize>() + self.rows * of_row
    }

    fn sample_splitters(&self) -> Vec<u128> {
        let buckets = (self.rows / BUCKET_ROWS).clamp(1, BUCKETS_MAX);
        if buckets == 1 || self.keeps_arrival_order() {
            return Vec::new();
        }
        let samples = buckets * SAMPLES_PER_BUCKET;
        let sample = |at: usize| {
            let row = self.rows / samples * at;
            self.packed.pack(&self.columns, row..row + 1)
        };
        let mut sampled: Vec<u128> = (0..samples).flat_map(sample).collect();
        sampled.sort_unstable_by(|x, y| self.compare(x, y));
        sampled.into_iter().skip(SAMPLES_PER_BUCKET).step_by(SAMPLES_PER_BUCKET).collect()
    }

    /// Returns the keys that the packed numbers do not decide fully.
    fn undecided_keys(&self) -> &[SortKey] {
        &self.spec.keys[self.packed.first_undecided_key..]
    }

    /// Compares two rows by their packed numbers, then by the keys that these do not decide, then by arrival.
    #[inline]
    fn compare(&self, x: &u128, y: &u128) -> Ordering {
        let keys = self.undecided_keys();
        if keys.is_empty() {
            return x.cmp(y);
        }
        (x >> ROW_BITS).cmp(&(y >> ROW_BITS)).then_with(|| {
            let (left, right) = (row_of(*x) as usize, row_of(*y) as usize);
            let decided = compare::compare_rows(keys, &self.columns, left, &self.columns, right);
            decided.expect("both rows are of the same columns").then(x.cmp(y))
        })
    }
}

/// Returns the row of a packed number: its lower 32 bits.
fn row_of(number: u128) -> u32 {
    (number & u128::from(NONE)) as u32
}
