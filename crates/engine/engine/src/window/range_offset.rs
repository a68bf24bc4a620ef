//! Frame bounds in RANGE mode with an offset: by the distance of ORDER BY keys.

use std::cmp::Ordering;
use std::ops::Range;

use types::Interval;

use super::compute_columns::WindowShare;
use crate::expression::float_order;
use crate::sort::SortKey;
use crate::{Column, ColumnData, Error, Result};

/// Frame bound in RANGE mode: the key of the current row plus a distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeOffset {
    /// ORDER BY key, by which the rows of a partition are sorted.
    pub key: SortKey,
    /// Distance after the current row's key; before it if negative.
    pub distance: Distance,
}

/// Distance between two keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distance {
    /// Distance of integers or of unscaled numerics.
    Exact(i128),
    /// Distance of `float8`.
    Float(f64),
    /// Distance of timestamps.
    Interval(Interval),
}

/// Cursor to one bound of a RANGE frame in a partition. Keys are sorted, so that it only moves forward.
pub(super) struct RangeCursor<'a> {
    key: SortKey,
    distance: Distance,
    column: &'a Column,
    share: &'a WindowShare<'a>,
    position: usize,
    end: usize,
}

/// ORDER BY key of a row; `None` is NULL.
type Key = Option<KeyValue>;

#[derive(Clone, Copy)]
enum KeyValue {
    Exact(i128),
    Float(f64),
}

impl<'a> RangeCursor<'a> {
    pub(super) fn new(near: RangeOffset, share: &'a WindowShare<'a>, partition: Range<usize>) -> Result<Self> {
        let RangeOffset { key, distance } = near;
        let distance = if key.is_descending { distance.negated()? } else { distance };
        let column = share.column(key.column)?;
        Ok(Self { key, distance, column, share, position: partition.start, end: partition.end })
    }

    /// Returns the first row of the frame of `row`.
    pub(super) fn start(&mut self, row: usize) -> Result<usize> {
        self.advance(row, Ordering::is_lt)
    }

    /// Returns the first row after the frame of `row`.
    pub(super) fn end(&mut self, row: usize) -> Result<usize> {
        self.advance(row, Ordering::is_le)
    }

    /// Advances past the keys whose order relative to the bound of `row` satisfies `is_behind`.
    fn advance(&mut self, row: usize, is_behind: fn(Ordering) -> bool) -> Result<usize> {
        let edge = self.key_at(row)?.map(|value| self.distance.add_to(value)).transpose()?;
        while self.position < self.end && is_behind(self.compare_keys(self.key_at(self.position)?, edge)?) {
            self.position += 1;
        }
        Ok(self.position)
    }

    fn key_at(&self, place: usize) -> Result<Key> {
        let row = self.share.row_at(place);
        if !self.column.is_valid(row) {
            return Ok(None);
        }
        Ok(Some(match &self.column.data {
            ColumnData::Ints { values, .. } => KeyValue::Exact(values[row].into()),
            ColumnData::WideInts(values) => KeyValue::Exact(values[row]),
            ColumnData::Floats(values) => KeyValue::Float(values[row]),
            _ => return Err(Error::Internal("the key of a RANGE window frame is not numeric")),
        }))
    }

    /// Compares two keys in the window's order.
    fn compare_keys(&self, left: Key, right: Key) -> Result<Ordering> {
        let (left, right) = match (left, right) {
            (Some(left), Some(right)) => (left, right),
            (None, None) => return Ok(Ordering::Equal),
            (left, _) => {
                return Ok(if left.is_none() == self.key.nulls_first { Ordering::Less } else { Ordering::Greater });
            }
        };
        let order = match (left, right) {
            (KeyValue::Exact(left), KeyValue::Exact(right)) => left.cmp(&right),
            (KeyValue::Float(left), KeyValue::Float(right)) => float_order(left, right),
            _ => return Err(Error::Internal("the keys of a RANGE window frame have different physical types")),
        };
        Ok(if self.key.is_descending { order.reverse() } else { order })
    }
}

impl Distance {
    fn negated(self) -> Result<Self> {
        Ok(match self {
            Self::Exact(distance) => Self::Exact(-distance),
            Self::Float(distance) => Self::Float(-distance),
            Self::Interval(distance) => Self::Interval(distance.checked_neg()?),
        })
    }

    fn add_to(self, value: KeyValue) -> Result<KeyValue> {
        match (self, value) {
            (Self::Exact(distance), KeyValue::Exact(value)) => Ok(KeyValue::Exact(value.saturating_add(distance))),
            (Self::Float(distance), KeyValue::Float(value)) => Ok(KeyValue::Float(value + distance)),
            (Self::Interval(distance), KeyValue::Exact(value)) => {
                let us = i64::try_from(value)
                    .map_err(|_| Error::Internal("a timestamp key of a RANGE window frame exceeds 64 bits"))?;
                Ok(KeyValue::Exact(distance.add_to_timestamp(us)?.into()))
            }
            _ => Err(Error::Internal("the offset and the key of a RANGE window frame have different types")),
        }
    }
}
