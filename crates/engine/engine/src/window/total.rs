//! Aggregates over frames, updated incrementally: rows that enter the frame are added, rows that leave it are removed.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::i256;

use super::Frame;
use super::compute::Share;
use super::frame::Frames;
use super::pick::{number, taken};
use crate::aggregate::{Kept, float_sum, ints, narrowest, numeric_overflow, square, sums256_to_binary};
use crate::sort::compare;
use crate::{Column, Data, Error, NONE, Result};

/// Computes an aggregate over the frame of each row of a share.
pub(super) fn kept(share: &Share<'_>, kept: Kept, column: Option<&Column>, frame: Frame) -> Result<Column> {
    let rows = share.range().len();
    let value = || column.ok_or(Error::Form("a window aggregate without an input column"));
    match kept {
        Kept::Count => {
            let mut count = Count { column, count: 0 };
            let mut counts = Vec::with_capacity(rows);
            each(share, frame, &mut count, |count| counts.push(count.count))?;
            Ok(ints(counts))
        }
        Kept::Sum => {
            let mut sum = Sum { column: value()?, sum: 0 };
            let mut sums = Vec::with_capacity(rows);
            each(share, frame, &mut sum, |sum| sums.push(sum.sum))?;
            Ok(Column::new(narrowest(sums)))
        }
        Kept::Sum256 { of_squares } => {
            let mut sum = Sum256 { column: value()?, of_squares, sum: i256::ZERO };
            let mut sums = Vec::with_capacity(rows);
            each(share, frame, &mut sum, |sum| sums.push(sum.sum))?;
            Ok(Column::new(Data::Opaque(sums256_to_binary(&sums))))
        }
        Kept::FloatSum => {
            let mut sum = FloatSum { column: value()?, sum: 0.0 };
            let mut sums = Vec::with_capacity(rows);
            each(share, frame, &mut sum, |sum| sums.push(sum.sum))?;
            Ok(Column::new(Data::Floats(Arc::new(sums))))
        }
        Kept::Moments => Err(Error::Form("variance states are not computed over frames")),
        Kept::Min(_) | Kept::Max(_) => {
            let wanted = if matches!(kept, Kept::Min(_)) { Ordering::Less } else { Ordering::Greater };
            let mut best = Best { column: value()?, wanted, rows: VecDeque::new() };
            let mut rows = Vec::with_capacity(rows);
            each(share, frame, &mut best, |best| rows.push(best.rows.front().map_or(NONE, |(_, row)| number(*row))))?;
            taken(value()?, &rows)
        }
    }
}

/// Aggregate state of a frame.
trait State {
    /// Whether rows can be removed; if not, the state is recomputed when a frame's start moves.
    const CAN_REMOVE: bool;

    fn clear(&mut self);

    /// Adds the row at a position in the share, which is at index `row` of the columns.
    fn add(&mut self, place: usize, row: usize) -> Result<()>;

    /// Removes the first row.
    fn remove(&mut self, place: usize, row: usize) -> Result<()>;
}

/// Calls `give` with the state of each row's frame.
fn each<S: State>(share: &Share<'_>, frame: Frame, state: &mut S, mut give: impl FnMut(&S)) -> Result<()> {
    for partition in share.within() {
        let mut frames = Frames::new(frame, partition.clone(), share)?;
        let mut held = partition.start..partition.start;
        state.clear();
        for place in partition {
            let wanted = frames.of(place)?;
            move_to(share, state, &mut held, wanted)?;
            give(state);
        }
    }
    Ok(())
}

fn move_to<S: State>(share: &Share<'_>, state: &mut S, held: &mut Range<usize>, wanted: Range<usize>) -> Result<()> {
    let is_left = held.start < wanted.start;
    if held.end <= wanted.start || (is_left && !S::CAN_REMOVE) {
        if is_left || held.end < wanted.start {
            state.clear();
            *held = wanted.start..wanted.start;
        }
    } else {
        for place in held.start..wanted.start {
            state.remove(place, share.row(place))?;
        }
        held.start = held.start.max(wanted.start);
    }
    for place in held.end..wanted.end {
        state.add(place, share.row(place))?;
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

impl State for Count<'_> {
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
fn exact(column: &Column, row: usize) -> Result<i128> {
    if !column.is_valid(row) {
        return Ok(0);
    }
    match &column.data {
        Data::Ints { values, .. } => Ok(values[row].into()),
        Data::Wide(values) => Ok(values[row]),
        _ => Err(Error::Form("the input of an exact sum is not an exact number")),
    }
}

/// Sum of exact numbers in 128 bits; 0 if there are none.
struct Sum<'a> {
    column: &'a Column,
    sum: i128,
}

impl State for Sum<'_> {
    const CAN_REMOVE: bool = true;

    fn clear(&mut self) {
        self.sum = 0;
    }

    fn add(&mut self, _: usize, row: usize) -> Result<()> {
        self.sum = self.sum.checked_add(exact(self.column, row)?).ok_or_else(numeric_overflow)?;
        Ok(())
    }

    fn remove(&mut self, _: usize, row: usize) -> Result<()> {
        self.sum = self.sum.checked_sub(exact(self.column, row)?).ok_or_else(numeric_overflow)?;
        Ok(())
    }
}

/// Sum of exact numbers, or of their squares, in 256 bits; 0 if there are none.
struct Sum256<'a> {
    column: &'a Column,
    of_squares: bool,
    sum: i256,
}

impl Sum256<'_> {
    fn value(&self, row: usize) -> Result<i256> {
        let value = exact(self.column, row)?;
        Ok(if self.of_squares { square(value) } else { i256::from_i128(value) })
    }
}

impl State for Sum256<'_> {
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

impl State for FloatSum<'_> {
    const CAN_REMOVE: bool = false;

    fn clear(&mut self) {
        self.sum = 0.0;
    }

    fn add(&mut self, _: usize, row: usize) -> Result<()> {
        let Data::Floats(values) = &self.column.data else { return Err(Error::Form("a float8 sum of another form")) };
        if self.column.is_valid(row) {
            self.sum = float_sum(self.sum, values[row])?;
        }
        Ok(())
    }

    fn remove(&mut self, _: usize, _: usize) -> Result<()> {
        Err(Error::Form("a float8 sum cannot remove a row"))
    }
}

/// Minimum or maximum of the frame's values.
struct Best<'a> {
    column: &'a Column,
    wanted: Ordering,
    /// Monotonic queue: positions and rows of the values that are better than all values after them, the best first.
    rows: VecDeque<(usize, usize)>,
}

impl State for Best<'_> {
    const CAN_REMOVE: bool = true;

    fn clear(&mut self) {
        self.rows.clear();
    }

    fn add(&mut self, place: usize, row: usize) -> Result<()> {
        if !self.column.is_valid(row) {
            return Ok(());
        }
        while let Some((_, last)) = self.rows.back() {
            if compare::values(self.column, *last, self.column, row)? == self.wanted {
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
