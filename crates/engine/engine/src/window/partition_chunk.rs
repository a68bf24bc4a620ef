//! Window functions of one part of a long partition: state is carried over from the preceding parts.

use super::compute_columns::WindowShare;
use super::value_functions::FrameRow;
use super::{
    FrameBound, FrameMode, OrderedRows, WindowFunction, WindowSpec, find_starts, frame_aggregates, ranking,
    value_functions,
};
use crate::aggregate::{AggregateKind, int_column};
use crate::sort::compare;
use crate::vector::concat;
use crate::{Batch, Bitmap, Column, ColumnData, Error, PhysicalType, Result};

/// Maximum `lag` or `lead` distance for which parts are computed; functions that look further need all rows of the
/// partition.
const LAG_MAX: u64 = 1 << 14;

/// State carried over from the rows of a partition that have been returned.
#[derive(Debug)]
pub(super) struct PartitionState {
    /// Number of these rows.
    rows: i64,
    /// Last of these rows: as many as functions look back to, at least one.
    last: Batch,
    /// Functions' values for the last row, as columns of one row.
    values: Vec<Column>,
}

/// Rows around a part that the functions need.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowReach {
    /// Number of preceding rows.
    before: usize,
    /// Number of following rows.
    after: usize,
    /// Whether peers must be in one part.
    peers: bool,
}

impl RowReach {
    /// Returns the rows that the functions need; `None` if one may need all rows of a partition.
    pub(super) fn try_from_spec(spec: &WindowSpec) -> Option<Self> {
        let none = Self { before: 0, after: 0, peers: false };
        spec.functions.iter().try_fold(none, |all, function| {
            let one = match function {
                WindowFunction::RowNumber => none,
                WindowFunction::Rank | WindowFunction::DenseRank => Self { peers: true, ..none },
                WindowFunction::LagLead { offset: before, .. } => {
                    let rows = before.unsigned_abs();
                    let rows = usize::try_from(rows).ok().filter(|_| rows <= LAG_MAX)?;
                    if 0 < *before { Self { before: rows, ..none } } else { Self { after: rows, ..none } }
                }
                // An encoded 256-bit sum cannot be carried over as the value of one more input row.
                WindowFunction::Aggregate { kind: AggregateKind::Sum256 { .. }, .. } => return None,
                WindowFunction::FirstValue { frame, .. }
                | WindowFunction::LastValue { frame, .. }
                | WindowFunction::Aggregate { frame, .. } => {
                    let is_running = frame.start == FrameBound::Unbounded && frame.end == FrameBound::Offset(0);
                    is_running.then_some(Self { peers: frame.mode == FrameMode::Peers, ..none })?
                }
                WindowFunction::PercentRank
                | WindowFunction::CumeDist
                | WindowFunction::Ntile(_)
                | WindowFunction::NthValue { .. } => return None,
            };
            Some(Self {
                before: all.before.max(one.before),
                after: all.after.max(one.after),
                peers: all.peers || one.peers,
            })
        })
    }

    /// Returns how many leading rows of an incomplete partition can be computed.
    pub(super) fn computable_rows(self, spec: &WindowSpec, rows: &Batch) -> Result<usize> {
        let most = rows.rows.saturating_sub(self.after);
        if !self.peers {
            return Ok(most);
        }
        let starts = find_starts(&ordered(rows), &spec.order_by, 0..rows.rows)?;
        Ok(starts.ones().take_while(|start| *start <= most).last().unwrap_or(0))
    }
}

impl PartitionState {
    /// Returns whether the first of `rows` belongs to the partition.
    pub(super) fn is_same_partition(&self, spec: &WindowSpec, rows: &Batch) -> Result<bool> {
        is_same_partition(spec, &self.last, rows)
    }
}

/// Returns whether the first of `rows` belongs to the same partition as the last row of `before`.
pub(super) fn is_same_partition(spec: &WindowSpec, before: &Batch, rows: &Batch) -> Result<bool> {
    let (Some(last), true) = (before.rows.checked_sub(1), 0 < rows.rows) else { return Ok(false) };
    for column in &spec.partition_by {
        let (before, next) = (&before.columns[*column], &rows.columns[*column]);
        let is_same = match (before.is_valid(last), next.is_valid(0)) {
            (true, true) => compare::compare_values(before, last, next, 0)?.is_eq(),
            (before, next) => before == next,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Computes the functions' columns for the rows of a part up to `end`, and the state to carry over; rows from `end` on
/// may be read by `lead`. If the functions depend on peers, `end` must not split a group of peers.
pub(super) fn compute_chunk(
    spec: &WindowSpec,
    reach: RowReach,
    carried: Option<&PartitionState>,
    rows: &Batch,
    end: usize,
) -> Result<(Vec<Column>, PartitionState)> {
    let peer_starts = find_starts(&ordered(rows), &spec.order_by, 0..end)?;
    let part = PartitionChunk { carried, rows, end, peer_starts };
    let columns = spec.functions.iter().enumerate().map(|(number, function)| part.column(number, function));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let last = |column: &Column| column.slice(end.saturating_sub(1), end);
    let values = columns.iter().map(last).collect();
    let before = carried.map_or(0, |carried| carried.rows);
    let given = i64::try_from(end).map_err(|_| Error::OutOfMemory("the rows of a window partition"))?;
    Ok((columns, PartitionState { rows: before + given, last: part.last(reach.before.max(1))?, values }))
}

struct PartitionChunk<'a> {
    carried: Option<&'a PartitionState>,
    rows: &'a Batch,
    end: usize,
    peer_starts: Bitmap,
}

impl PartitionChunk<'_> {
    fn column(&self, number: usize, function: &WindowFunction) -> Result<Column> {
        let before = self.carried.map_or(0, |carried| carried.rows);
        let value = self.carried.map(|carried| &carried.values[number]);
        match function {
            WindowFunction::RowNumber | WindowFunction::Rank => {
                self.with_share(0, |share| add_offset(&ranking::ranking_column(function, share), before))
            }
            WindowFunction::DenseRank => {
                let ranks = value.map_or(Ok(0), first_integer)?;
                self.with_share(0, |share| add_offset(&ranking::ranking_column(function, share), ranks))
            }
            WindowFunction::LagLead { column, offset: before, default: otherwise } => {
                self.lag(*column, *before, otherwise.as_ref())
            }
            WindowFunction::Aggregate { kind: AggregateKind::Count, column, frame } => {
                let counted = value.map_or(Ok(0), first_integer)?;
                let column = column.map(|column| self.values(column));
                self.with_share(0, |share| {
                    add_offset(
                        &frame_aggregates::aggregate_frames(share, AggregateKind::Count, column.as_ref(), *frame)?,
                        counted,
                    )
                })
            }
            // The carried value stands for all preceding rows, as one more row in front.
            WindowFunction::FirstValue { column, frame } => self.with_carried_row(value, *column, |share, column| {
                value_functions::frame_value(share, column, *frame, FrameRow::Number(1))
            }),
            WindowFunction::Aggregate { kind: kept, column: Some(column), frame } => {
                self.with_carried_row(value, *column, |share, column| {
                    frame_aggregates::aggregate_frames(share, *kept, Some(column), *frame)
                })
            }
            WindowFunction::LastValue { column, frame } => {
                let column = self.values(*column);
                self.with_share(0, |share| value_functions::frame_value(share, &column, *frame, FrameRow::Last))
            }
            _ => Err(Error::Internal("a window function that needs its entire partition got a chunk of it")),
        }
    }

    /// Returns a column of the rows up to `end`.
    fn values(&self, column: usize) -> Column {
        self.rows.columns[column].slice(0, self.end)
    }

    /// Calls `of` with a share of the rows up to `end`, preceded by `others` more rows.
    fn with_share<T>(&self, others: usize, of: impl FnOnce(&WindowShare<'_>) -> Result<T>) -> Result<T> {
        let rows = others + self.end;
        let peer_starts =
            Bitmap::from_fn(rows, |row| row.checked_sub(others).is_none_or(|row| self.peer_starts.get(row)));
        let ordered = OrderedRows { rows, columns: &[], order: None };
        of(&WindowShare { rows: &ordered, partitions: std::slice::from_ref(&(0..rows)), peer_starts: &peer_starts })
    }

    fn with_carried_row(
        &self,
        value: Option<&Column>,
        column: usize,
        of: impl FnOnce(&WindowShare<'_>, &Column) -> Result<Column>,
    ) -> Result<Column> {
        let values = self.values(column);
        let Some(value) = value else { return self.with_share(0, |share| of(share, &values)) };
        let form = PhysicalType::from_column(&values);
        let values = concat(vec![value.clone(), values], form)?;
        let given = self.with_share(1, |share| of(share, &values))?;
        Ok(given.slice(1, 1 + self.end))
    }

    fn lag(&self, column: usize, before: i64, otherwise: Option<&Column>) -> Result<Column> {
        let rows = &self.rows.columns[column];
        let (values, others) = match self.carried {
            Some(PartitionState { last, .. }) => {
                (concat(vec![last.columns[column].clone(), rows.clone()], PhysicalType::from_column(rows))?, last.rows)
            }
            None => (rows.clone(), 0),
        };
        let ordered = OrderedRows { rows: values.rows(), columns: &[], order: None };
        let all = 0..values.rows();
        let share =
            WindowShare { rows: &ordered, partitions: std::slice::from_ref(&all), peer_starts: &Bitmap::default() };
        Ok(value_functions::lag(&share, &values, before, otherwise)?.slice(others, others + self.end))
    }

    /// Returns the last rows up to `end`, filled up with carried rows.
    fn last(&self, rows: usize) -> Result<Batch> {
        let before = self.carried.map(|carried| &carried.last);
        let others = before.map_or(0, |before| before.rows);
        let all = others + self.end;
        let column = |(position, column): (usize, &Column)| {
            let given = column.slice(self.end.saturating_sub(rows), self.end);
            let before = before.map(|before| before.columns[position].clone());
            let column = concat(before.into_iter().chain([given]).collect(), PhysicalType::from_column(column))?;
            Ok(column.slice(column.rows() - rows.min(column.rows()), column.rows()))
        };
        let columns = self.rows.columns.iter().enumerate().map(column).collect::<Result<_>>()?;
        Ok(Batch { rows: rows.min(all), columns })
    }
}

fn ordered(rows: &Batch) -> OrderedRows<'_> {
    OrderedRows { rows: rows.rows, columns: &rows.columns, order: None }
}

fn add_offset(column: &Column, more: i64) -> Result<Column> {
    let ColumnData::Ints { values, .. } = &column.data else {
        return Err(Error::Internal("a row number computed by a window function is not an integer"));
    };
    Ok(int_column(values.iter().map(|value| value + more).collect()))
}

fn first_integer(column: &Column) -> Result<i64> {
    match &column.data {
        ColumnData::Ints { values, .. } if !values.is_empty() => Ok(values[0]),
        _ => Err(Error::Internal(
            "a row number carried over from an earlier chunk of a window partition is not an integer",
        )),
    }
}
