//! Window functions of one part of a long partition: state is carried over from the preceding parts.

use super::compute::Share;
use super::pick::Picked;
use super::{Edge, Ordered, Units, WindowFunction, WindowSpec, pick, place, starts, total};
use crate::aggregate::{Kept, ints};
use crate::sort::compare;
use crate::vector::concat;
use crate::{Batch, Bits, Column, Data, Error, Form, Result};

/// Maximum `lag` or `lead` distance for which parts are computed; functions that look further need all rows of the
/// partition.
const DISTANCE_MAX: u64 = 1 << 14;

/// State carried over from the rows of a partition that have been returned.
#[derive(Debug)]
pub(super) struct Carried {
    /// Number of these rows.
    rows: i64,
    /// Last of these rows: as many as functions look back to, at least one.
    last: Batch,
    /// Functions' values for the last row, as columns of one row.
    values: Vec<Column>,
}

/// Rows around a part that the functions need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Number of preceding rows.
    before: usize,
    /// Number of following rows.
    after: usize,
    /// Whether peers must be in one part.
    peers: bool,
}

impl Reach {
    /// Returns the rows that the functions need; `None` if one may need all rows of a partition.
    pub(super) fn of(spec: &WindowSpec) -> Option<Self> {
        let none = Self { before: 0, after: 0, peers: false };
        spec.functions.iter().try_fold(none, |all, function| {
            let one = match function {
                WindowFunction::RowNumber => none,
                WindowFunction::Rank | WindowFunction::DenseRank => Self { peers: true, ..none },
                WindowFunction::Shifted { before, .. } => {
                    let rows = before.unsigned_abs();
                    let rows = usize::try_from(rows).ok().filter(|_| rows <= DISTANCE_MAX)?;
                    if 0 < *before { Self { before: rows, ..none } } else { Self { after: rows, ..none } }
                }
                // An encoded 256-bit sum cannot be carried over as the value of one more input row.
                WindowFunction::Kept { kept: Kept::Sum256 { .. }, .. } => return None,
                WindowFunction::First { frame, .. }
                | WindowFunction::Last { frame, .. }
                | WindowFunction::Kept { frame, .. } => {
                    let is_running = frame.start == Edge::Partition && frame.end == Edge::At(0);
                    is_running.then_some(Self { peers: frame.units == Units::Peers, ..none })?
                }
                WindowFunction::PercentRank
                | WindowFunction::CumeDist
                | WindowFunction::Ntile(_)
                | WindowFunction::Nth { .. } => return None,
            };
            Some(Self {
                before: all.before.max(one.before),
                after: all.after.max(one.after),
                peers: all.peers || one.peers,
            })
        })
    }

    /// Returns how many leading rows of an incomplete partition can be computed.
    pub(super) fn end(self, spec: &WindowSpec, rows: &Batch) -> Result<usize> {
        let most = rows.rows.saturating_sub(self.after);
        if !self.peers {
            return Ok(most);
        }
        let starts = starts(&ordered(rows), &spec.order_by, 0..rows.rows)?;
        Ok(starts.ones().take_while(|start| *start <= most).last().unwrap_or(0))
    }
}

impl Carried {
    /// Returns whether the first of `rows` belongs to the partition.
    pub(super) fn is_continued_by(&self, spec: &WindowSpec, rows: &Batch) -> Result<bool> {
        is_continued(spec, &self.last, rows)
    }
}

/// Returns whether the first of `rows` belongs to the same partition as the last row of `before`.
pub(super) fn is_continued(spec: &WindowSpec, before: &Batch, rows: &Batch) -> Result<bool> {
    let (Some(last), true) = (before.rows.checked_sub(1), 0 < rows.rows) else { return Ok(false) };
    for column in &spec.partition_by {
        let (before, next) = (&before.columns[*column], &rows.columns[*column]);
        let is_same = match (before.is_valid(last), next.is_valid(0)) {
            (true, true) => compare::values(before, last, next, 0)?.is_eq(),
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
pub(super) fn columns_of_part(
    spec: &WindowSpec,
    reach: Reach,
    carried: Option<&Carried>,
    rows: &Batch,
    end: usize,
) -> Result<(Vec<Column>, Carried)> {
    let peer_starts = starts(&ordered(rows), &spec.order_by, 0..end)?;
    let part = Part { carried, rows, end, peer_starts };
    let columns = spec.functions.iter().enumerate().map(|(number, function)| part.column(number, function));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let last = |column: &Column| column.slice(end.saturating_sub(1), end);
    let values = columns.iter().map(last).collect();
    let before = carried.map_or(0, |carried| carried.rows);
    let given = i64::try_from(end).map_err(|_| Error::Memory("the rows of a partition"))?;
    Ok((columns, Carried { rows: before + given, last: part.last(reach.before.max(1))?, values }))
}

struct Part<'a> {
    carried: Option<&'a Carried>,
    rows: &'a Batch,
    end: usize,
    peer_starts: Bits,
}

impl Part<'_> {
    fn column(&self, number: usize, function: &WindowFunction) -> Result<Column> {
        let before = self.carried.map_or(0, |carried| carried.rows);
        let value = self.carried.map(|carried| &carried.values[number]);
        match function {
            WindowFunction::RowNumber | WindowFunction::Rank => {
                self.share(0, |share| plus(&place::column(function, share), before))
            }
            WindowFunction::DenseRank => {
                let ranks = value.map_or(Ok(0), number_of)?;
                self.share(0, |share| plus(&place::column(function, share), ranks))
            }
            WindowFunction::Shifted { column, before, otherwise } => self.shifted(*column, *before, otherwise.as_ref()),
            WindowFunction::Kept { kept: Kept::Count, column, frame } => {
                let counted = value.map_or(Ok(0), number_of)?;
                let column = column.map(|column| self.values(column));
                self.share(0, |share| plus(&total::kept(share, Kept::Count, column.as_ref(), *frame)?, counted))
            }
            // The carried value stands for all preceding rows, as one more row in front.
            WindowFunction::First { column, frame } => {
                self.beginning_with(value, *column, |share, column| pick::one(share, column, *frame, Picked::Number(1)))
            }
            WindowFunction::Kept { kept, column: Some(column), frame } => {
                self.beginning_with(value, *column, |share, column| total::kept(share, *kept, Some(column), *frame))
            }
            WindowFunction::Last { column, frame } => {
                let column = self.values(*column);
                self.share(0, |share| pick::one(share, &column, *frame, Picked::Last))
            }
            _ => Err(Error::Form("a window function that needs an entire partition")),
        }
    }

    /// Returns a column of the rows up to `end`.
    fn values(&self, column: usize) -> Column {
        self.rows.columns[column].slice(0, self.end)
    }

    /// Calls `of` with a share of the rows up to `end`, preceded by `others` more rows.
    fn share<T>(&self, others: usize, of: impl FnOnce(&Share<'_>) -> Result<T>) -> Result<T> {
        let rows = others + self.end;
        let peer_starts = Bits::of(rows, |row| row.checked_sub(others).is_none_or(|row| self.peer_starts.get(row)));
        let ordered = Ordered { rows, columns: &[], order: None };
        of(&Share { rows: &ordered, partitions: std::slice::from_ref(&(0..rows)), peer_starts: &peer_starts })
    }

    fn beginning_with(
        &self,
        value: Option<&Column>,
        column: usize,
        of: impl FnOnce(&Share<'_>, &Column) -> Result<Column>,
    ) -> Result<Column> {
        let values = self.values(column);
        let Some(value) = value else { return self.share(0, |share| of(share, &values)) };
        let form = Form::of(&values);
        let values = concat(vec![value.clone(), values], form)?;
        let given = self.share(1, |share| of(share, &values))?;
        Ok(given.slice(1, 1 + self.end))
    }

    fn shifted(&self, column: usize, before: i64, otherwise: Option<&Column>) -> Result<Column> {
        let rows = &self.rows.columns[column];
        let (values, others) = match self.carried {
            Some(Carried { last, .. }) => {
                (concat(vec![last.columns[column].clone(), rows.clone()], Form::of(rows))?, last.rows)
            }
            None => (rows.clone(), 0),
        };
        let ordered = Ordered { rows: values.rows(), columns: &[], order: None };
        let all = 0..values.rows();
        let share = Share { rows: &ordered, partitions: std::slice::from_ref(&all), peer_starts: &Bits::default() };
        Ok(pick::shifted(&share, &values, before, otherwise)?.slice(others, others + self.end))
    }

    /// Returns the last rows up to `end`, filled up with carried rows.
    fn last(&self, rows: usize) -> Result<Batch> {
        let before = self.carried.map(|carried| &carried.last);
        let others = before.map_or(0, |before| before.rows);
        let all = others + self.end;
        let column = |(position, column): (usize, &Column)| {
            let given = column.slice(self.end.saturating_sub(rows), self.end);
            let before = before.map(|before| before.columns[position].clone());
            let column = concat(before.into_iter().chain([given]).collect(), Form::of(column))?;
            Ok(column.slice(column.rows() - rows.min(column.rows()), column.rows()))
        };
        let columns = self.rows.columns.iter().enumerate().map(column).collect::<Result<_>>()?;
        Ok(Batch { rows: rows.min(all), columns })
    }
}

fn ordered(rows: &Batch) -> Ordered<'_> {
    Ordered { rows: rows.rows, columns: &rows.columns, order: None }
}

fn plus(column: &Column, more: i64) -> Result<Column> {
    let Data::Ints { values, .. } = &column.data else { return Err(Error::Form("a row count in another form")) };
    Ok(ints(values.iter().map(|value| value + more).collect()))
}

fn number_of(column: &Column) -> Result<i64> {
    match &column.data {
        Data::Ints { values, .. } if !values.is_empty() => Ok(values[0]),
        _ => Err(Error::Form("a carried row count in another form")),
    }
}
