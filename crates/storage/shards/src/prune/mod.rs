//! Pruning: skips shards by catalog statistics, and row groups and pages by a file's own indexes.
//!
//! It only evaluates zone-map entries; remaining rows are filtered again above the scan.
//!
//! - `pruner.rs`: pruning of shards; `zone_maps.rs`: zone maps of a file.

use std::ops::Range;

use types::ColumnId;

use crate::reader::{OpenFile, RowGroupRead};
use crate::{ColumnDef, Predicate, Result, ShardMeta};

mod pruner;
mod zone_maps;

pub(crate) use pruner::PreparedPredicate;
pub use pruner::Pruner;
pub(crate) use zone_maps::read_row_group_zones;

#[cfg(test)]
mod tests;

/// Counts of what a read skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruning {
    /// Number of pages of the columns being read that start within the rows being read.
    pub pages: u64,
    /// Number of these that are skipped.
    pub pages_pruned: u64,
    /// True if the complete row group is skipped, rows outside the read included.
    pub is_row_group_pruned: bool,
}

/// Returns whether some row of the shard may pass all predicates. `columns` are the table's; a column newer than the
/// shard has its `missing` value in every row.
#[must_use]
pub fn may_match(shard: &ShardMeta, predicates: &[Predicate], columns: &[ColumnDef]) -> bool {
    predicates.iter().all(|predicate| PreparedPredicate::new(predicate, columns).may_pass(shard))
}

/// Returns the rows of the pages in which some row may pass all predicates, ascending.
pub(crate) fn matching_pages(file: &OpenFile, row_group: usize, predicates: &[Predicate]) -> Result<Vec<Range<usize>>> {
    let rows = file.rows(row_group);
    let mut kept = Vec::from_iter((0 < rows).then_some(0..rows));
    for predicate in predicates {
        if kept.is_empty() {
            break;
        }
        let Some(zones) = zone_maps::read_zones(file, row_group, predicate.column)? else { continue };
        if !predicate.test.may_pass(&zones.row_group()) {
            return Ok(Vec::new());
        }
        if let Some(passing) = zones.matching_rows(&predicate.test) {
            kept = intersection(&kept, &passing);
        }
    }
    Ok(kept)
}

/// Counts what a read of the columns `leaves` skips if `kept` remains of its row group.
pub(crate) fn count_pruned(file: &OpenFile, read: &RowGroupRead, leaves: &[usize], kept: &[Range<usize>]) -> Pruning {
    let mut pruning = Pruning { is_row_group_pruned: kept.is_empty(), ..Pruning::default() };
    for leaf in leaves {
        let pages = file.page_rows(read.row_group, *leaf);
        for page in pages.iter().filter(|page| read.rows.contains(&page.start)) {
            pruning.pages += 1;
            pruning.pages_pruned += u64::from(!overlaps(kept, page));
        }
    }
    pruning
}

/// Returns true if `range` overlaps one of the ascending `ranges`.
pub(crate) fn overlaps(ranges: &[Range<usize>], range: &Range<usize>) -> bool {
    let first = ranges.partition_point(|other| other.end <= range.start);
    ranges.get(first).is_some_and(|other| other.start < range.end)
}

/// Intersects two ascending lists of ranges.
pub(crate) fn intersection(a: &[Range<usize>], b: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut common: Vec<Range<usize>> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(left), Some(right)) = (a.get(i), b.get(j)) {
        let both = left.start.max(right.start)..left.end.min(right.end);
        if !both.is_empty() {
            match common.last_mut() {
                Some(last) if last.end == both.start => last.end = both.end,
                _ => common.push(both),
            }
        }
        if left.end < right.end { i += 1 } else { j += 1 }
    }
    common
}

/// Returns the root column of the file with this id.
pub(crate) fn find_root(file: &OpenFile, column: ColumnId) -> Option<usize> {
    file.ids.iter().position(|id| *id == Some(column))
}

/// Returns the leaf column of a column that is not nested.
pub(crate) fn find_leaf(file: &OpenFile, column: ColumnId) -> Option<usize> {
    let root = find_root(file, column)?;
    let parquet = file.metadata.parquet_schema();
    (0..parquet.num_columns()).find(|leaf| parquet.get_column_root_idx(*leaf) == root)
}
