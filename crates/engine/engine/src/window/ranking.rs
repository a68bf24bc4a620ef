//! Ranking functions: depend only on the position of a row in its partition.

use std::ops::Range;
use std::sync::Arc;

use super::WindowFunction;
use super::compute_columns::WindowShare;
use crate::{Bounds, Column, ColumnData};

/// Computes the column of a ranking function.
pub(super) fn ranking_column(function: &WindowFunction, share: &WindowShare<'_>) -> Column {
    if matches!(function, WindowFunction::PercentRank | WindowFunction::CumeDist) {
        let mut values = Vec::with_capacity(share.range().len());
        share.local_partitions().for_each(|partition| fractional_ranks(function, share, partition, &mut values));
        return Column::new(ColumnData::Floats(Arc::new(values)));
    }
    let mut values: Vec<i64> = Vec::with_capacity(share.range().len());
    share.local_partitions().for_each(|partition| integer_ranks(function, share, partition, &mut values));
    let bounds = Bounds { min: 0, max: values.iter().max().copied().unwrap_or(0).into() };
    Column::new(ColumnData::Ints { values: Arc::new(values), bounds })
}

fn integer_ranks(function: &WindowFunction, share: &WindowShare<'_>, partition: Range<usize>, values: &mut Vec<i64>) {
    let rows = partition.len();
    let (mut rank, mut dense_rank) = (0, 0);
    for (number, place) in (1..).zip(partition) {
        if share.peer_starts.get(place) || number == 1 {
            (rank, dense_rank) = (number, dense_rank + 1);
        }
        values.push(match function {
            WindowFunction::Rank => rank,
            WindowFunction::DenseRank => dense_rank,
            WindowFunction::Ntile(parts) => ntile(number - 1, rows, *parts),
            _ => number,
        });
    }
}

/// Returns the bucket of the row at `place`, counted from 1. If rows do not divide evenly, the first buckets have one
/// row more.
fn ntile(place: i64, rows: usize, parts: i64) -> i64 {
    let (rows, parts) = (i128::from(i64::try_from(rows).unwrap_or(i64::MAX)), i128::from(parts.max(1)));
    let (size, larger, place) = (rows / parts, rows % parts, i128::from(place));
    let in_larger = larger * (size + 1);
    let part = if place < in_larger { place / (size + 1) } else { larger + (place - in_larger) / size.max(1) };
    i64::try_from(part + 1).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a table has fewer than 2^53 rows")]
fn fractional_ranks(
    function: &WindowFunction,
    share: &WindowShare<'_>,
    partition: Range<usize>,
    values: &mut Vec<f64>,
) {
    let rows = partition.len();
    let mut start = partition.start;
    while start < partition.end {
        let end = (start + 1..partition.end).find(|place| share.peer_starts.get(*place)).unwrap_or(partition.end);
        let value = match function {
            WindowFunction::CumeDist => (end - partition.start) as f64 / rows as f64,
            _ => (start - partition.start) as f64 / rows.saturating_sub(1).max(1) as f64,
        };
        values.extend(std::iter::repeat_n(value, end - start));
        start = end;
    }
}
