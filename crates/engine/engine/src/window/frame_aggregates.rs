//! Aggregates over frames, updated incrementally: rows that enter the frame are added, rows that leave it are removed.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::i256;

use super::Frame;
use super::compute_columns::WindowShare;
use super::frame::Frames;
use super::value_functions::{row_number, take_or_null};
use crate::aggregate::{
    AggregateKind, checked_float_add, int_column, narrowest_data, numeric_overflow, square, sums256_to_binary,
};
use crate::sort::compare;
use crate::{Column, ColumnData, Error, NONE, Result};

/// Computes an aggregate over the frame of each row of a share.
pub(super) fn aggregate_frames(
    share: &WindowShare<'_>,
    kept: AggregateKind,
    column: Option<&Column>,
    frame: Frame,
) -> Result<Column> {
    let rows = share.range().len();
    let value = || column.ok_or(Error::Internal("a window aggregate without an input column"));
    match kept {
        AggregateKind::Count => {
            let mut count = Count { column, count: 0 };
            let mut counts = Vec::with_capacity(rows);
            for_each_frame(share, frame, &mut count, |count| counts.push(count.count))?;
            Ok(int_column(counts))
        }
        AggregateKind::Sum => {
            let mut sum = Sum { column: value()?, sum: 0 };
            let mut sums = Vec::with_capacity(rows);
            for_each_frame(share, frame, &mut sum, |sum| sums.push(sum.sum))?;
            Ok(Column::new(narrowest_data(sums)))
        }
        AggregateKind::Sum256 { sums_squares } => {
            let mut sum = Sum256 { column: value()?, sums_squares, sum: i256::ZERO };
            let mut sums = Vec::with_capacity(rows);
            for_each_frame(share, frame, &mut sum, |sum| sums.push(sum.sum))?;
            Ok(Column::new(ColumnData::Opaque(sums256_to_binary(&sums))))
        }
        AggregateKind::FloatSum => {
            let mut sum = FloatSum { column: value()?, sum: 0.0 };
            let mut sums = Vec::with_capacity(rows);
            for_each_frame(share, frame, &mut sum, |sum| sums.push(sum.sum))?;
            Ok(Column::new(ColumnData::Floats(Arc::new(sums))))
        }
        AggregateKind::Moments => Err(Error::Internal("a variance was requested over a window frame")),
        AggregateKind::Min(_) | AggregateKind::Max(_) => {
            let wanted = if matches!(kept, AggregateKind::Min(_)) { Ordering::Less } else { Ordering::Greater };
            let mut best = FrameExtreme { column: value()?, wanted, rows: VecDeque::new() };
            let mut rows = Vec::with_capacity(rows);
            for_each_frame(share, frame, &mut best, |best| {
                rows.push(best.rows.front().map_or(NONE, |(_, row)| row_number(*row)))
            })?;
            take_or_null(value()?, &rows)
        }
    }
}

/// Aggregate state of a frame.
trait FrameState {
    /// Whether rows can be removed; if not, the state is recomputed when a frame's start moves.
    const CAN_REMOVE: bool;

    fn clear(&mut self);

    /// Adds the row at a position in the share, which is at index `row` of the columns.
    fn add(&mut self, place: usize, row: usize) -> Result<()>;

    /// Removes the first row.
    fn remove(&mut self, place: usize, row: usize) -> Result<()>;
}

/// Calls `give` with the state of each row's frame.
fn for_each_frame<S: FrameState>(
    share: &WindowShare<'_>,
    frame: Frame,
    state: &mut S,
    mut give: impl FnMut(&S),
) -> Result<()> {
    for partition in share.local_partitions() {
        let mut frames = Frames::new(frame, partition.clone(), share)?;
        let mut current = partition.start..partition.start;
        state.clear();
        for place in partition {
            let wanted = frames.frame_of(place)?;
            move_frame(share, state, &mut current, wanted)?;
            give(state);
        }
    }
    Ok(())
}

fn move_frame<S: FrameState>(
    share: &WindowShare<'_>,
    state: &mut S,
    held: &mut Range<usize>,
    wanted: Range<usize>,
) -> Result<()> {
    let is_left = held.start < wanted.start;
    if held.end <= wanted.start || (is_left && !S::CAN_REMOVE) {
        if is_left || held.end < wanted.start {
            state.clear();
            *held = wanted.start..wanted.start;
        }
    } else {
        for place in held.start..wanted.start {
            state.remove(place, share.row_at(place))?;
        }
        held.start = held.start.max(wanted.start);
    }
    for place in held.end..wanted.end {
        state.add(place, share.row_at(place))?;
    }
    held.end = held.end.max(wanted.end);
    Ok(())
}

struct Count<'a> {
    /// Column whose NULLs are not counted; `None` counts rows.
    column: Option<&'a Column>,
    count: i64,
}

impl Count<'_> {
    fn counts(&self, row: usize) -> bool {
        self.column.is_none_or(|column| column.is_valid(row))
    }
}

impl FrameState for Count<'_> {
    const CAN_REMOVE: bool = true;

    fn clear(&mut self) {
        self.count = 0;
    }

    fn add(&mut self, _: usize, row: usize) -> Result<()> {
        self.count += i64::from(self.counts(row));
        Ok(())
    }

    fn remove(&mut self, _: usize, row: usize) -> Result<()> {
        self.count -= i64::from(self.counts(row));
        Ok(())
    }
}

/// Returns the exact number of a row; 0 for a NULL.
fn exact_value(column: &Column, row: usize) -> Result<i128> {
    if !column.is_valid(row) {
        return Ok(0);
    }
    match &column.data {
        ColumnData::Ints { values, .. } => Ok(values[row].into()),
        ColumnData::WideInts(values) => Ok(values[row]),
        _ => Err(Error::Internal("the input of an exact sum is not an exact number")),
    }
}

/// Sum of exact numbers in 128 bits; 0 if there are none.
struct Sum<'a> {
    column: &'a Column,
    sum: i128,
}

impl FrameState for Sum<'_> {
    const CAN_REMOVE: bool = true;

    fn clear(&mut self) {
        self.sum = 0;
    }

    fn add(&mut self, _: usize, row: usize) -> Result<()> {
        self.sum = self.sum.checked_add(exact_value(self.column, row)?).ok_or_else(numeric_overflow)?;
        Ok(())
    }

    fn remove(&mut self, _: usize, row: usize) -> Result<()> {
        self.sum = self.sum.checked_sub(exact_value(self.column, row)?).ok_or_else(numeric_overflow)?;
        Ok(())
    }
}

/// Sum of exact numbers, or of their squares, in 256 bits; 0 if there are none.
struct Sum256<'a> {
    column: &'a Column,
    sums_squares: bool,
    sum: i256,
}

impl Sum256<'_> {
    fn value(&self, row: usize) -> Result<i256> {
        let value = exact_value(self.column, row)?;
        Ok(if self.sums_squares { square(value) } else { i256::from_i128(value) })
    }
}

impl FrameState for Sum256<'_> {
    const CAN_REMOVE: bool = true;

    fn clear(&mut self) {
        self.sum = i256::ZERO;
    }

    fn add(&mut self, _: usize, row: usize) -> Result<()> {
        self.sum = self.sum.checked_add(self.value(row)?).ok_or_else(numeric_overflow)?;
        Ok(())
    }

    fn remove(&mut self, _: usize, row: usize) -> Result<()> {
        self.sum = self.sum.checked_sub(self.value(row)?).ok_or_else(numeric_overflow)?;
        Ok(())
    }
}

/// Sum of `float8`, added in row order. Rows are never removed, as subtraction would not be exact.
struct FloatSum<'a> {
    column: &'a Column,
    sum: f64,
}

impl FrameState for FloatSum<'_> {
    const CAN_REMOVE: bool = false;

    fn clear(&mut self) {
        self.sum = 0.0;
    }

    fn add(&mut self, _: usize, row: usize) -> Result<()> {
        let ColumnData::Floats(values) = &self.column.data else {
            return Err(Error::Internal("the input of a float8 sum over a window frame is not float8"));
        };
        if self.column.is_valid(row) {
            self.sum = checked_float_add(self.sum, values[row])?;
        }
        Ok(())
    }

    fn remove(&mut self, _: usize, _: usize) -> Result<()> {
        Err(Error::Internal("a float8 sum over a window frame cannot remove a row"))
    }
}

/// Minimum or maximum of the frame's values.
struct FrameExtreme<'a> {
    column: &'a Column,
    wanted: Ordering,
    /// Monotonic queue: positions and rows of the values that are better than all values after them, the best first.
    rows: VecDeque<(usize, usize)>,
}

impl FrameState for FrameExtreme<'_> {
    const CAN_REMOVE: bool = true;

    fn clear(&mut self) {
        self.rows.clear();
    }

    fn add(&mut self, place: usize, row: usize) -> Result<()> {
        if !self.column.is_valid(row) {
            return Ok(());
        }
        while let Some((_, last)) = self.rows.back() {
            if compare::compare_values(self.column, *last, self.column, row)? == self.wanted {
                break;
            }
            self.rows.pop_back();
        }
        self.rows.push_back((place, row));
        Ok(())
    }

    fn remove(&mut self, place: usize, _: usize) -> Result<()> {
        if self.rows.front().is_some_and(|(first, _)| *first == place) {
            self.rows.pop_front();
        }
        Ok(())
    }
}
