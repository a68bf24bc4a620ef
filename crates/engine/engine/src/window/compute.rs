//! Computes the result columns of a share of the partitions.

use std::ops::Range;

use super::partition::{partitions, starts};
use super::pick::Picked;
use super::{WindowFunction, WindowSpec, pick, place, total};
use crate::aggregate::Kept;
use crate::{Bits, Column, Error, Form, Result};

/// Sorted rows: columns and the order of their rows.
pub(crate) struct Ordered<'a> {
    pub(crate) rows: usize,
    pub(crate) columns: &'a [Column],
    /// Index of each row in the columns; `None` if the columns are in order themselves.
    pub(crate) order: Option<&'a [u32]>,
}

impl Ordered<'_> {
    /// Returns the index in the columns of the row at a position in the order.
    #[inline]
    pub(crate) fn row(&self, place: usize) -> usize {
        self.order.map_or(place, |order| order[place] as usize)
    }
}

/// Consecutive partitions that functions are computed of together.
pub(super) struct Share<'a> {
    pub(super) rows: &'a Ordered<'a>,
    pub(super) partitions: &'a [Range<usize>],
    /// Whether each row is the first of its peers, counted from the first row of the share.
    pub(super) peer_starts: &'a Bits,
}

impl Share<'_> {
    /// Returns the positions of the share's rows in the order of all rows.
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.partitions.first().map_or(0, |partition| partition.start);
        start..self.partitions.last().map_or(start, |partition| partition.end)
    }

    /// Iterates over the partitions as ranges of positions in the share.
    pub(super) fn within(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.range().start;
        self.partitions.iter().map(move |partition| partition.start - first..partition.end - first)
    }

    /// Returns the index in the columns of the row at a position in the share.
    #[inline]
    pub(super) fn row(&self, place: usize) -> usize {
        self.rows.row(self.range().start + place)
    }

    pub(super) fn column(&self, column: usize) -> Result<&Column> {
        self.rows.columns.get(column).ok_or(Error::Form("an input column of a window function is missing"))
    }
}

/// Computes the functions' columns for the partitions that start in `range`. `partition_starts` covers all rows.
pub(crate) fn columns(
    spec: &WindowSpec,
    rows: &Ordered<'_>,
    partition_starts: &Bits,
    range: Range<usize>,
) -> Result<Vec<Column>> {
    let found: Vec<Range<usize>> = partitions(partition_starts, range, rows.rows).collect();
    let mut share = Share { rows, partitions: &found, peer_starts: &Bits::default() };
    let peer_starts = starts(rows, &spec.order_by, share.range())?;
    share.peer_starts = &peer_starts;
    spec.functions.iter().map(|function| column(function, &share)).collect()
}

fn column(function: &WindowFunction, share: &Share<'_>) -> Result<Column> {
    match function {
        WindowFunction::Shifted { column, before, otherwise } => {
            pick::shifted(share, share.column(*column)?, *before, otherwise.as_ref())
        }
        WindowFunction::First { column, frame } => pick::one(share, share.column(*column)?, *frame, Picked::Number(1)),
        WindowFunction::Nth { column, number, frame } => {
            pick::one(share, share.column(*column)?, *frame, Picked::Number(*number))
        }
        WindowFunction::Last { column, frame } => pick::one(share, share.column(*column)?, *frame, Picked::Last),
        WindowFunction::Kept { kept, column, frame } => {
            let column = column.map(|column| share.column(column)).transpose()?;
            total::kept(share, *kept, column, *frame)
        }
        place => Ok(place::column(place, share)),
    }
}

/// Returns the form of a function's result.
pub(crate) fn form_of(function: &WindowFunction, forms: &[Form]) -> Form {
    let of = |column: &usize| forms.get(*column).copied().unwrap_or(Form::Ints);
    match function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::Ntile(_) => {
            Form::Ints
        }
        WindowFunction::PercentRank | WindowFunction::CumeDist => Form::Floats,
        WindowFunction::Shifted { column, .. }
        | WindowFunction::First { column, .. }
        | WindowFunction::Nth { column, .. }
        | WindowFunction::Last { column, .. } => of(column),
        WindowFunction::Kept { kept, column, .. } => match kept {
            Kept::Count => Form::Ints,
            Kept::Sum => Form::Wide,
            Kept::FloatSum => Form::Floats,
            Kept::Sum256 { .. } | Kept::Moments => Form::Opaque,
            Kept::Min(_) | Kept::Max(_) => column.as_ref().map_or(Form::Ints, of),
        },
    }
}
