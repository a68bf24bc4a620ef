//! Frame bounds in RANGE mode with an offset: by the distance of ORDER BY keys.

use std::cmp::Ordering;
use std::ops::Range;

use types::Interval;

use super::compute::Share;
use crate::expression::float_order;
use crate::sort::SortKey;
use crate::{Column, Data, Error, Result};

/// Frame bound in RANGE mode: the key of the current row plus a distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
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
    Span(Interval),
}

/// Cursor to one bound of a RANGE frame in a partition. Keys are sorted, so that it only moves forward.
pub(super) struct Nearby<'a> {
    key: SortKey,
    distance: Distance,
    column: &'a Column,
    share: &'a Share<'a>,
    found: usize,
    last: usize,
}

/// ORDER BY key of a row; `None` is NULL.
type Key = Option<Number>;

#[derive(Clone, Copy)]
enum Number {
    Exact(i128),
    Float(f64),
}

impl<'a> Nearby<'a> {
    pub(super) fn new(near: Near, share: &'a Share<'a>, partition: Range<usize>) -> Result<Self> {
        let Near { key, distance } = near;
        let distance = if key.is_descending { distance.turned()? } else { distance };
        let column = share.column(key.column)?;
        Ok(Self { key, distance, column, share, found: partition.start, last: partition.end })
    }

    /// Returns the first row of the frame of `row`.
    pub(super) fn start(&mut self, row: usize) -> Result<usize> {
        self.skip(row, Ordering::is_lt)
    }

    /// Returns the first row after the frame of `row`.
    pub(super) fn end(&mut self, row: usize) -> Result<usize> {
        self.skip(row, Ordering::is_le)
    }

    /// Advances past the keys whose order relative to the bound of `row` satisfies `is_behind`.
    fn skip(&mut self, row: usize, is_behind: fn(Ordering) -> bool) -> Result<usize> {
        let edge = self.value(row)?.map(|value| self.distance.from(value)).transpose()?;
        while self.found < self.last && is_behind(self.order(self.value(self.found)?, edge)?) {
            self.found += 1;
        }
        Ok(self.found)
    }

    fn value(&self, place: usize) -> Result<Key> {
        let row = self.share.row(place);
        if !self.column.is_valid(row) {
            return Ok(None);
        }
        Ok(Some(match &self.column.data {
            Data::Ints { values, .. } => Number::Exact(values[row].into()),
            Data::Wide(values) => Number::Exact(values[row]),
            Data::Floats(values) => Number::Float(values[row]),
            _ => return Err(Error::Form("the key of a RANGE frame is not numeric")),
        }))
    }

    /// Compares two keys in the window's order.
    fn order(&self, left: Key, right: Key) -> Result<Ordering> {
        let (left, right) = match (left, right) {
            (Some(left), Some(right)) => (left, right),
            (None, None) => return Ok(Ordering::Equal),
            (left, _) => {
                return Ok(if left.is_none() == self.key.nulls_first { Ordering::Less } else { Ordering::Greater });
            }
        };
        let order = match (left, right) {
            (Number::Exact(left), Number::Exact(right)) => left.cmp(&right),
            (Number::Float(left), Number::Float(right)) => float_order(left, right),
            _ => return Err(Error::Form("keys of a RANGE frame in different forms")),
        };
        Ok(if self.key.is_descending { order.reverse() } else { order })
    }
}

impl Distance {
    fn turned(self) -> Result<Self> {
        Ok(match self {
            Self::Exact(distance) => Self::Exact(-distance),
            Self::Float(distance) => Self::Float(-distance),
            Self::Span(distance) => Self::Span(distance.checked_neg()?),
        })
    }

    fn from(self, value: Number) -> Result<Number> {
        match (self, value) {
            (Self::Exact(distance), Number::Exact(value)) => Ok(Number::Exact(value.saturating_add(distance))),
            (Self::Float(distance), Number::Float(value)) => Ok(Number::Float(value + distance)),
            (Self::Span(distance), Number::Exact(value)) => {
                let us = i64::try_from(value).map_err(|_| Error::Form("a timestamp that exceeds 64 bits"))?;
                Ok(Number::Exact(distance.add_to_timestamp(us)?.into()))
            }
            _ => Err(Error::Form("the offset and the key of a RANGE frame in different forms")),
        }
    }
}
