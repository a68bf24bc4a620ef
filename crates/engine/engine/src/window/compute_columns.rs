//! Computes the result columns of a share of the partitions.

use std::ops::Range;

use super::partition_starts::{find_starts, partitions_in};
use super::value_functions::FrameRow;
use super::{WindowFunction, WindowSpec, frame_aggregates, ranking, value_functions};
use crate::aggregate::AggregateKind;
use crate::{Bitmap, Column, Error, PhysicalType, Result};

/// Sorted rows: columns and the order of their rows.
pub(crate) struct OrderedRows<'a> {
    pub(crate) rows: usize,
    pub(crate) columns: &'a [Column],
    /// Index of each row in the columns; `None` if the columns are in order themselves.
    pub(crate) order: Option<&'a [u32]>,
}

impl OrderedRows<'_> {
    /// Returns the index in the columns of the row at a position in the order.
    #[inline]
    pub(crate) fn row_at(&self, place: usize) -> usize {
        self.order.map_or(place, |order| order[place] as usize)
    }
}

/// Consecutive partitions that functions are computed of together.
pub(super) struct WindowShare<'a> {
    pub(super) rows: &'a OrderedRows<'a>,
    pub(super) partitions: &'a [Range<usize>],
    /// Whether each row is the first of its peers, counted from the first row of the share.
    pub(super) peer_starts: &'a Bitmap,
}

impl WindowShare<'_> {
    /// Returns the positions of the share's rows in the order of all rows.
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.partitions.first().map_or(0, |partition| partition.start);
        start..self.partitions.last().map_or(start, |partition| partition.end)
    }

    /// Iterates over the partitions as ranges of positions in the share.
    pub(super) fn local_partitions(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.range().start;
        self.partitions.iter().map(move |partition| partition.start - first..partition.end - first)
    }

    /// Returns the index in the columns of the row at a position in the share.
    #[inline]
    pub(super) fn row_at(&self, place: usize) -> usize {
        self.rows.row_at(self.range().start + place)
    }

    pub(super) fn column(&self, column: usize) -> Result<&Column> {
        self.rows.columns.get(column).ok_or(Error::Internal("an input column of a window function is missing"))
    }
}

/// Computes the functions' columns for the partitions that start in `range`. `partition_starts` covers all rows.
pub(crate) fn compute_columns(
    spec: &WindowSpec,
    rows: &OrderedRows<'_>,
    partition_starts: &Bitmap,
    range: Range<usize>,
) -> Result<Vec<Column>> {
    let found: Vec<Range<usize>> = partitions_in(partition_starts, range, rows.rows).collect();
    let mut share = WindowShare { rows, partitions: &found, peer_starts: &Bitmap::default() };
    let peer_starts = find_starts(rows, &spec.order_by, share.range())?;
    share.peer_starts = &peer_starts;
    spec.functions.iter().map(|function| compute_column(function, &share)).collect()
}

fn compute_column(function: &WindowFunction, share: &WindowShare<'_>) -> Result<Column> {
    match function {
        WindowFunction::LagLead { column, offset: before, default: otherwise } => {
            value_functions::lag(share, share.column(*column)?, *before, otherwise.as_ref())
        }
        WindowFunction::FirstValue { column, frame } => {
            value_functions::frame_value(share, share.column(*column)?, *frame, FrameRow::Number(1))
        }
        WindowFunction::NthValue { column, number, frame } => {
            value_functions::frame_value(share, share.column(*column)?, *frame, FrameRow::Number(*number))
        }
        WindowFunction::LastValue { column, frame } => {
            value_functions::frame_value(share, share.column(*column)?, *frame, FrameRow::Last)
        }
        WindowFunction::Aggregate { kind: kept, column, frame } => {
            let column = column.map(|column| share.column(column)).transpose()?;
            frame_aggregates::aggregate_frames(share, *kept, column, *frame)
        }
        place => Ok(ranking::ranking_column(place, share)),
    }
}

/// Returns the form of a function's result.
pub(crate) fn result_type(function: &WindowFunction, forms: &[PhysicalType]) -> PhysicalType {
    let of = |column: &usize| forms.get(*column).copied().unwrap_or(PhysicalType::Ints);
    match function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::Ntile(_) => {
            PhysicalType::Ints
        }
        WindowFunction::PercentRank | WindowFunction::CumeDist => PhysicalType::Floats,
        WindowFunction::LagLead { column, .. }
        | WindowFunction::FirstValue { column, .. }
        | WindowFunction::NthValue { column, .. }
        | WindowFunction::LastValue { column, .. } => of(column),
        WindowFunction::Aggregate { kind: kept, column, .. } => match kept {
            AggregateKind::Count => PhysicalType::Ints,
            AggregateKind::Sum => PhysicalType::WideInts,
            AggregateKind::FloatSum => PhysicalType::Floats,
            AggregateKind::Sum256 { .. } | AggregateKind::Moments => PhysicalType::Opaque,
            AggregateKind::Min(_) | AggregateKind::Max(_) => column.as_ref().map_or(PhysicalType::Ints, of),
        },
    }
}
