//! Scans of distributed tables divided among processes by bucket: each process reads all rows of its buckets.
//!
//! Pages are the unit of reading and caching: a process reads each page with rows of its buckets, and leaves out the
//! rows of others.

use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch};
use blocks::BLOCK_ROWS;
use catalog::Distribution;
use datafusion::common::Result as DfResult;
use functions::error::to_datafusion;
use shards::{BUCKET_COUNT, BucketKeys, ColumnDef, FETCH_ROWS_MIN, ShardReader};
use storage_error::from_shards;
use types::{ColumnId, SqlResult};
use url::Url;

use crate::scan::{Scan, ScanShard};
use crate::scan_parts::{Part, Parts};
use crate::shard_scan_exec::ShardScanExec;
use crate::table_columns::{bucket_keys, column_def};
use crate::unflushed_batch;
use crate::unflushed_by_index::UnflushedRows;

/// Distribution of a scan's rows over processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowDistribution {
    /// Any process may read any part: best the one that has it cached.
    AnyProcess,
    /// Each process reads the rows of some buckets.
    ByBucket(BucketKeys),
    /// Each process may read all rows.
    Replicated,
}

/// Marker in a session's configuration: scans are planned for distribution among workers.
#[derive(Debug)]
pub struct PlanForWorkers;

impl ShardScanExec {
    /// Returns the distribution that follows from the table's distribution and from how its shards were written.
    pub fn row_distribution(&self) -> RowDistribution {
        if self.scan.table.distribution == Distribution::Replicate {
            return RowDistribution::Replicated;
        }
        match bucket_keys(&self.scan.table) {
            Some(keys) if self.scan.count_unbucketed_shards(&keys) == 0 => RowDistribution::ByBucket(keys),
            _ => RowDistribution::AnyProcess,
        }
    }

    /// Divides the scan into one for each of `homes`, with the rows of the buckets that this process owns; `owners`
    /// has, for each bucket, an index into `homes`.
    ///
    /// # Errors
    /// Damaged unflushed rows.
    pub fn divide_by_bucket(&self, keys: &BucketKeys, owners: &[usize], homes: &[Url]) -> DfResult<Vec<Self>> {
        let mut fresh: Vec<UnflushedRows> = vec![Vec::new(); homes.len()];
        if self.reads_unflushed() {
            let rows = self.scan.unflushed();
            let buckets = self.scan.unflushed_buckets(keys).map_err(to_datafusion)?;
            for (row, bucket) in rows.iter().zip(buckets) {
                fresh[owners[usize::from(bucket)]].push(row.clone());
            }
        }
        let variants = homes.iter().zip(fresh).enumerate().map(|(number, (home, fresh))| {
            let (shards, mut parts) = self.owned_parts(keys, |bucket| owners[bucket] == number);
            parts.extend(Part::cut_unflushed(fresh.len()));
            self.with_shards(shards, parts.into_iter().collect::<Parts>(), fresh, home.as_str())
        });
        Ok(variants.collect())
    }

    /// Returns the shards with rows of owned buckets, and the parts of them that have to be read.
    fn owned_parts(&self, keys: &BucketKeys, is_own: impl Fn(usize) -> bool) -> (Vec<ScanShard>, Vec<Part>) {
        let (mut shards, mut parts): (Vec<ScanShard>, Vec<Part>) = (Vec::new(), Vec::new());
        let mut places = vec![None; self.scan.shards.len()];
        let own: Vec<Vec<Range<u64>>> = self.scan.shards.iter().map(|shard| owned_rows(shard, keys, &is_own)).collect();
        for part in self.parts() {
            let Part::Flushed { shard, row_group, rows } = part else { continue };
            let scanned = &self.scan.shards[*shard];
            let first: u64 = scanned.meta.row_groups[..*row_group].iter().map(|group| group.rows).sum();
            for (pages, of_others) in owned_pages(&own[*shard], first, rows) {
                let place = *places[*shard].get_or_insert_with(|| {
                    shards.push(scanned.clone());
                    shards.len() - 1
                });
                shards[place].rows_read_elsewhere.extend(of_others);
                parts.extend(cut_at_segments(pages).map(|rows| Part::Flushed {
                    shard: place,
                    row_group: *row_group,
                    rows,
                }));
            }
        }
        (shards, parts)
    }
}

impl Scan {
    /// Returns the number of its shards whose rows are not grouped into buckets by these keys.
    pub fn count_unbucketed_shards(&self, keys: &BucketKeys) -> usize {
        self.shards.iter().filter(|shard| shard.file.is_some() || shard.meta.buckets_for_keys(keys).is_none()).count()
    }

    fn unflushed_buckets(&self, keys: &BucketKeys) -> SqlResult<Vec<u8>> {
        let rows = self.unflushed();
        let column = |id: ColumnId| self.table.columns.iter().find(|column| column.id == id).map(column_def);
        let columns: Vec<ColumnDef> = keys.columns().filter_map(column).collect();
        let batch: RecordBatch = unflushed_batch::unflushed_batch(rows, &columns, &ShardReader::schema(&columns))?;
        let values: Vec<ArrayRef> = batch.columns().to_vec();
        keys.buckets(&values).map_err(from_shards)
    }
}

fn owned_rows(shard: &ScanShard, keys: &BucketKeys, is_own: impl Fn(usize) -> bool) -> Vec<Range<u64>> {
    let buckets = shard.meta.buckets_for_keys(keys);
    buckets.map(|buckets| buckets.rows(|bucket| bucket < BUCKET_COUNT && is_own(bucket))).unwrap_or_default()
}

/// Returns the pages among `rows` that contain rows of `own`, merged where they touch, each with the rows of the shard
/// to leave out. `rows` belong to a row group whose first row has the number `first` in the shard.
fn owned_pages(own: &[Range<u64>], first: u64, rows: &Range<usize>) -> Vec<(Range<usize>, Vec<Range<u32>>)> {
    let (start, end) = (first + rows.start as u64, first + rows.end as u64);
    let mut found: Vec<(Range<usize>, Vec<Range<u32>>)> = Vec::new();
    for range in own.iter().filter(|range| range.start < end && start < range.end) {
        let (from, to) =
            (row_in_group_as_usize(range.start.max(start) - first), row_in_group_as_usize(range.end.min(end) - first));
        let page = from / BLOCK_ROWS * BLOCK_ROWS;
        let pages = page.max(rows.start)..to.next_multiple_of(BLOCK_ROWS).min(rows.end);
        match found.last_mut() {
            Some((last, _)) if pages.start <= last.end => last.end = pages.end,
            _ => found.push((pages, Vec::new())),
        }
    }
    for (pages, of_others) in &mut found {
        let (from, to) = (first + pages.start as u64, first + pages.end as u64);
        let mut next = from;
        for range in own.iter().filter(|range| range.start < to && from < range.end) {
            if next < range.start {
                of_others.push(row_in_shard_as_u32(next)..row_in_shard_as_u32(range.start));
            }
            next = range.end;
        }
        if next < to {
            of_others.push(row_in_shard_as_u32(next)..row_in_shard_as_u32(to));
        }
    }
    found
}

/// Cuts rows at the same positions as any other scan of the row group.
fn cut_at_segments(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let first = rows.start / FETCH_ROWS_MIN;
    let end = rows.end;
    let piece =
        move |number: usize| rows.start.max(number * FETCH_ROWS_MIN)..rows.end.min((number + 1) * FETCH_ROWS_MIN);
    (first..end.div_ceil(FETCH_ROWS_MIN)).map(piece)
}

fn row_in_group_as_usize(row: u64) -> usize {
    usize::try_from(row).expect("a row group's rows fit in memory")
}

fn row_in_shard_as_u32(row: u64) -> u32 {
    u32::try_from(row).expect("a shard has fewer than 2^32 rows")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_process_reads_rows_of_its_buckets_in_full_pages(
            runs in proptest::collection::vec((0_usize..3, 1_u64..150_000), 1..12),
            first_group in 0_u64..700_000,
        ) {
            let ends: Vec<u64> = runs.iter().scan(0, |end, (_, rows)| { *end += rows; Some(*end) }).collect();
            let total = *ends.last().expect("there is a run");
            let groups: Vec<Range<u64>> = match first_group.min(total) {
                0 => std::iter::once(0..total).collect(),
                cut if cut == total => std::iter::once(0..total).collect(),
                cut => vec![0..cut, cut..total],
            };
            let mut read = 0;
            for process in 0..3 {
                let own: Vec<Range<u64>> = runs.iter().zip(&ends).filter(|((owner, _), _)| *owner == process)
                    .map(|((_, rows), end)| end - rows..*end).collect();
                let owned: u64 = own.iter().map(|range| range.end - range.start).sum();
                let mut seen = 0;
                for group in &groups {
                    let rows = 0..row_in_group_as_usize(group.end - group.start);
                    for (pages, of_others) in owned_pages(&own, group.start, &rows) {
                        prop_assert!(pages.start % BLOCK_ROWS == 0 && pages.end <= rows.end);
                        prop_assert!(pages.end % BLOCK_ROWS == 0 || pages.end == rows.end);
                        let cut: Vec<_> = cut_at_segments(pages.clone()).collect();
                        prop_assert_eq!(cut.iter().map(ExactSizeIterator::len).sum::<usize>(), pages.len());
                        prop_assert!(cut.iter().all(|piece| piece.len() <= FETCH_ROWS_MIN && !piece.is_empty()));
                        let (from, to) = (group.start + pages.start as u64, group.start + pages.end as u64);
                        for others in &of_others {
                            let others = u64::from(others.start)..u64::from(others.end);
                            prop_assert!(from <= others.start && others.end <= to && others.start < others.end);
                            prop_assert!(own.iter().all(|range| range.end <= others.start || others.end <= range.start));
                        }
                        let left_out: usize = of_others.iter().map(ExactSizeIterator::len).sum();
                        seen += (pages.len() - left_out) as u64;
                    }
                }
                prop_assert_eq!(seen, owned);
                read += seen;
            }
            prop_assert_eq!(read, total);
        }
    }
}
