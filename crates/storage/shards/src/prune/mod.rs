//! What of a table need not be read: shards by what the catalog knows, row groups and pages by a file's own indexes.
//!
//! Pruning is an answer about zones alone: rows that remain are filtered again above the scan.

use std::ops::Range;

use types::ColumnId;

use crate::reader::{File, RowGroupRead};
use crate::{ColumnDef, Predicate, Result, ShardMeta};

mod pruner;
mod zones;

pub(crate) use pruner::Asked;
pub use pruner::Pruner;
pub(crate) use zones::row_groups;

#[cfg(test)]
mod tests;

/// How much a read skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruning {
    /// Pages of the columns that are read, those that begin among the rows that are read.
    pub pages: u64,
    pub pages_pruned: u64,
    /// Whether nothing of the row group is left, its other rows among them.
    pub is_row_group_pruned: bool,
}

/// Whether some row of the shard may pass all predicates. `columns` are the table's: in a shard that is older than one of
/// them every row has its `missing` value.
#[must_use]
pub fn may_match(shard: &ShardMeta, predicates: &[Predicate], columns: &[ColumnDef]) -> bool {
    predicates.iter().all(|predicate| Asked::new(predicate, columns).may_pass(shard))
}

/// The rows of the row group's pages in which some row may pass all predicates, ascending.
pub(crate) fn pages(file: &File, row_group: usize, predicates: &[Predicate]) -> Result<Vec<Range<usize>>> {
    let rows = file.rows(row_group);
    let mut kept = Vec::from_iter((0 < rows).then_some(0..rows));
    for predicate in predicates {
        if kept.is_empty() {
            break;
        }
        let Some(zones) = zones::of(file, row_group, predicate.column)? else { continue };
        if !predicate.test.may_pass(&zones.row_group()) {
            return Ok(Vec::new());
        }
        if let Some(passing) = zones.passing(&predicate.test) {
            kept = intersection(&kept, &passing);
        }
    }
    Ok(kept)
}

/// Counts what a read of the columns `leaves` skips when `kept` is left of its row group.
pub(crate) fn counted(file: &File, read: &RowGroupRead, leaves: &[usize], kept: &[Range<usize>]) -> Pruning {
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

/// Whether `range` has a row in common with the ascending `ranges`.
pub(crate) fn overlaps(ranges: &[Range<usize>], range: &Range<usize>) -> bool {
    let first = ranges.partition_point(|other| other.end <= range.start);
    ranges.get(first).is_some_and(|other| other.start < range.end)
}

/// The rows that are in both; both ascend.
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

/// Where a column of the table lies in the file.
pub(crate) fn root_of(file: &File, column: ColumnId) -> Option<usize> {
    file.ids.iter().position(|id| *id == Some(column))
}

/// Parquet's column of a column that is not nested.
pub(crate) fn leaf_of(file: &File, column: ColumnId) -> Option<usize> {
    let root = root_of(file, column)?;
    let parquet = file.metadata.parquet_schema();
    (0..parquet.num_columns()).find(|leaf| parquet.get_column_root_idx(*leaf) == root)
}
