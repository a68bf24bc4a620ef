//! Frames by the distance of their rows' keys.

use std::cmp::Ordering;
use std::ops::Range;

use types::Interval;

use super::compute::Share;
use crate::expression::float_order;
use crate::sort::SortKey;
use crate::{Column, Data, Error, Result};

/// An edge of a frame: keys that come no later, or no earlier, than the current row's and a distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The one that the rows of a partition are in the order of.
    pub key: SortKey,
    /// How far after the current row's, before it where that is negative.
    pub distance: Distance,
}

/// How far keys are from each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distance {
    /// Of integers, or of digits of numerics.
    Exact(i128),
    Float(f64),
    /// Of moments.
    Span(Interval),
}

/// Looks for the rows of a partition that are not too far away. Keys are in order, so that it never goes back.
pub(super) struct Nearby<'a> {
    key: SortKey,
    distance: Distance,
    column: &'a Column,
    share: &'a Share<'a>,
    found: usize,
    last: usize,
}

/// A key; `None` is NULL.
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

    /// The first row that a frame starts with.
    pub(super) fn start(&mut self, row: usize) -> Result<usize> {
        self.skip(row, Ordering::is_lt)
    }

    /// The first row that comes after the frame.
    pub(super) fn end(&mut self, row: usize) -> Result<usize> {
        self.skip(row, Ordering::is_le)
    }

    /// Goes on while keys compare with where the edge of a row is so that they are to be left behind.
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
            _ => return Err(Error::Form("a key without distances")),
        }))
    }

    /// Which of two keys comes first in the window's order.
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
            _ => return Err(Error::Form("keys of two forms")),
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
                let us = i64::try_from(value).map_err(|_| Error::Form("a moment of 128 bits"))?;
                Ok(Number::Exact(distance.add_to_timestamp(us)?.into()))
            }
            _ => Err(Error::Form("a distance of another form")),
        }
    }
}
