//! Sample sort: rows, as numbers of packed keys, are divided into consecutive buckets, which are sorted independently
//! in parallel.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use super::packed::{Packed, ROW_BITS};
use super::{SortKey, SortSpec, SortedRows, Sorting, compare};
use crate::vector::concat;
use crate::{BATCH_ROWS, Column, Error, NONE, Result};

/// Approximate number of rows in a bucket.
const BUCKET_ROWS: usize = 1 << 15;
/// Maximum number of buckets; more would cost more than they save.
const BUCKETS_MAX: usize = 1 << 10;
/// Rows sampled for each bucket to find the splitters between buckets.
const SAMPLES: usize = 16;

/// Parallel sort of all workers' rows: the caller scatters shares of the rows to buckets, then sorts each bucket.
#[derive(Debug)]
pub struct Sorter {
    spec: Arc<SortSpec>,
    rows: usize,
    columns: Vec<Column>,
    packed: Packed,
    /// Splitters: lower bound of each bucket but the first.
    borders: Vec<u128>,
}

/// Packed numbers of a share of the rows, by bucket.
#[derive(Debug)]
pub struct Scattered(Vec<Vec<u128>>);

impl Sorter {
    /// Concatenates the rows that the workers have collected and chooses the splitters.
    ///
    /// # Errors
    /// [`Error::Memory`] for 2^32 rows or more.
    pub fn new(spec: &Arc<SortSpec>, mut parts: Vec<Sorting>) -> Result<Self> {
        let rows = parts.iter().map(Sorting::rows).sum();
        if !Self::can_have(rows) {
            return Err(Error::Memory("2^32 rows to sort"));
        }
        let column = |(position, form)| {
            concat(parts.iter_mut().flat_map(|part: &mut Sorting| part.take_column(position)).collect(), form)
        };
        let columns = spec.forms.iter().copied().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        drop(parts);
        let packed = Packed::new(&spec.keys, &columns)?;
        let mut sorter = Self { spec: Arc::clone(spec), rows, columns, packed, borders: Vec::new() };
        sorter.borders = sorter.find_borders();
        Ok(sorter)
    }

    /// Returns the approximate memory that sorting needs beside the collected rows, in bytes. One column exists twice
    /// while it is concatenated; then the rows' numbers exist twice.
    #[must_use]
    pub fn room_bytes<'a>(parts: impl Iterator<Item = &'a Sorting>) -> usize {
        parts
            .map(|part| {
                let spec = part.spec();
                let functions = spec.windows.as_ref().map_or(0, |windows| windows.functions.len());
                let of_row = 3 * size_of::<u128>() + 2 * size_of::<u32>() + 2 * functions * size_of::<i128>();
                part.memory_bytes().div_ceil(spec.forms.len().max(1)) + part.rows() * of_row
            })
            .sum()
    }

    /// Returns whether so many rows can be sorted together: row numbers have 32 bits.
    #[must_use]
    pub fn can_have(rows: usize) -> bool {
        u32::try_from(rows).is_ok()
    }

    /// Returns whether rows stay in arrival order, as there are no keys.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
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
        self.borders.len() + 1
    }

    /// Scatters a share of the rows to the buckets.
    #[must_use]
    pub fn scatter(&self, share: usize) -> Scattered {
        let (start, end) = (share * 4 * BUCKET_ROWS, self.rows.min((share + 1) * 4 * BUCKET_ROWS));
        let mut buckets = vec![Vec::new(); self.buckets()];
        for first in (start..end).step_by(BATCH_ROWS) {
            for number in self.packed.numbers(&self.columns, first..end.min(first + BATCH_ROWS)) {
                let bucket = self.borders.partition_point(|border| self.order(border, &number).is_le());
                buckets[bucket].push(number);
            }
        }
        Scattered(buckets)
    }

    /// Sorts a bucket and returns its rows in order. `shares` must be all shares.
    #[must_use]
    pub fn bucket(&self, bucket: usize, shares: &[Scattered]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(shares.iter().map(|Scattered(buckets)| buckets[bucket].len()).sum());
        shares.iter().for_each(|Scattered(buckets)| numbers.extend_from_slice(&buckets[bucket]));
        if self.open_keys().is_empty() {
            numbers.sort_unstable();
        } else {
            numbers.sort_unstable_by(|x, y| self.order(x, y));
        }
        numbers.into_iter().map(row).collect()
    }

    /// Returns the sorted rows, given the rows of each bucket in order.
    #[must_use]
    pub fn in_order(self, buckets: &[Vec<u32>]) -> SortedRows {
        let mut order = if self.is_in_order() { None } else { Some(buckets.concat()) };
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
    pub fn sorted(self, stop: &AtomicBool) -> Result<SortedRows> {
        if self.is_in_order() {
            return Ok(self.in_order(&[]));
        }
        let unless_stopped = || if stop.load(atomic::Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) };
        let share = |share| unless_stopped().map(|()| self.scatter(share));
        let shares = (0..self.shares()).map(share).collect::<Result<Vec<Scattered>>>()?;
        let bucket = |bucket| unless_stopped().map(|()| self.bucket(bucket, &shares));
        let buckets = (0..self.buckets()).map(bucket).collect::<Result<Vec<Vec<u32>>>>()?;
        Ok(self.in_order(&buckets))
    }

    /// Returns the approximate memory use in bytes, including the rows' numbers.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let functions = self.spec.windows.as_ref().map_or(0, |windows| windows.functions.len());
        let of_row = (3 + 2 * functions) * size_of::<u128>();
        self.columns.iter().map(Column::memory_bytes).sum::<usize>() + self.rows * of_row
    }

    fn find_borders(&self) -> Vec<u128> {
        let buckets = (self.rows / BUCKET_ROWS).clamp(1, BUCKETS_MAX);
        if buckets == 1 || self.is_in_order() {
            return Vec::new();
        }
        let samples = buckets * SAMPLES;
        let sample = |at: usize| {
            let row = self.rows / samples * at;
            self.packed.numbers(&self.columns, row..row + 1)
        };
        let mut sampled: Vec<u128> = (0..samples).flat_map(sample).collect();
        sampled.sort_unstable_by(|x, y| self.order(x, y));
        sampled.into_iter().skip(SAMPLES).step_by(SAMPLES).collect()
    }

    /// Returns the keys that the packed numbers do not decide fully.
    fn open_keys(&self) -> &[SortKey] {
        &self.spec.keys[self.packed.first_open..]
    }

    /// Compares two rows by their packed numbers, then by the keys that these do not decide, then by arrival.
    #[inline]
    fn order(&self, x: &u128, y: &u128) -> Ordering {
        let keys = self.open_keys();
        if keys.is_empty() {
            return x.cmp(y);
        }
        (x >> ROW_BITS).cmp(&(y >> ROW_BITS)).then_with(|| {
            let (left, right) = (row(*x) as usize, row(*y) as usize);
            let decided = compare::rows(keys, &self.columns, left, &self.columns, right);
            decided.expect("both rows are of the same columns").then(x.cmp(y))
        })
    }
}

/// Returns the row of a packed number: its lower 32 bits.
fn row(number: u128) -> u32 {
    (number & u128::from(NONE)) as u32
}
