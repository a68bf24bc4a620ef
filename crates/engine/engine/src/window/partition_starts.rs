//! Finds the starts of partitions and of groups of peers.

use std::ops::Range;

use crate::sort::compare;
use crate::window::OrderedRows;
use crate::{Bitmap, Column, Result};

/// Returns which rows of `range` differ from the previous row in one of the columns; the first of all rows counts as
/// different.
pub(crate) fn find_starts(rows: &OrderedRows<'_>, columns: &[usize], range: Range<usize>) -> Result<Bitmap> {
    let columns: Vec<&Column> = columns.iter().map(|column| &rows.columns[*column]).collect();
    let mut failed = Ok(());
    let starts = Bitmap::from_fn(range.len(), |at| {
        let place = range.start + at;
        let Some(before) = place.checked_sub(1) else { return true };
        let (x, y) = (rows.row_at(before), rows.row_at(place));
        columns.iter().any(|column| match compare::is_not_distinct(column, x, y) {
            Ok(is_same) => !is_same,
            Err(error) => {
                failed = Err(error);
                true
            }
        })
    });
    failed.map(|()| starts)
}

/// Iterates over the partitions that start in `range`.
pub(super) fn partitions_in(
    starts: &Bitmap,
    range: Range<usize>,
    rows: usize,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let next = move |from: usize| (from..rows).find(|row| starts.get(*row)).unwrap_or(rows);
    let mut start = next(range.start);
    std::iter::from_fn(move || {
        let partition = (start < range.end && start < rows).then(|| start..next(start + 1))?;
        start = partition.end;
        Some(partition)
    })
}
