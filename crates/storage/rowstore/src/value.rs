//! Column values, borrowed from an array or a stored row.

use arrow::array::Array;

use crate::tuple::{EncodedItems, EncodedList};
use crate::{ColumnValues, Result};

#[cfg(test)]
pub(crate) mod random_values;

/// A value of a column. `==` compares the stored bits; SQL's order and equality are those of [`crate::encode_key`].
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// Value of an integer-like type: integers, oids, dates in days, times and timestamps in microseconds.
    Int(i64),
    /// Unscaled value of a numeric; the scale is part of the column's type.
    Decimal(i128),
    Float4(f32),
    Float8(f64),
    Text(&'a str),
    /// Value of `bytea` or `uuid`.
    Bytes(&'a [u8]),
    Interval {
        months: i32,
        days: i32,
        nanos: i64,
    },
    List(List<'a>),
}

impl<'a> Value<'a> {
    /// Returns the value in row `row` of an array. To read many values use [`ColumnValues`].
    pub fn from_array(array: &'a dyn Array, row: usize) -> Result<Value<'a>> {
        Ok(ColumnValues::new(array)?.get(row))
    }

    /// Whether the value is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns the kind of the value, for error messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Decimal(_) => "a numeric",
            Value::Float4(_) => "a float4",
            Value::Float8(_) => "a float8",
            Value::Text(_) => "a text",
            Value::Bytes(_) => "a byte string",
            Value::Interval { .. } => "an interval",
            Value::List(_) => "a list",
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Decimal(left), Value::Decimal(right)) => left == right,
            (Value::Float4(left), Value::Float4(right)) => left.to_bits() == right.to_bits(),
            (Value::Float8(left), Value::Float8(right)) => left.to_bits() == right.to_bits(),
            (Value::Text(left), Value::Text(right)) => left == right,
            (Value::Bytes(left), Value::Bytes(right)) => left == right,
            (
                Value::Interval { months, days, nanos },
                Value::Interval { months: other_months, days: other_days, nanos: other_nanos },
            ) => (months, days, nanos) == (other_months, other_days, other_nanos),
            (Value::List(left), Value::List(right)) => left.iter().eq(right.iter()),
            _ => false,
        }
    }
}

/// The elements of an array value, borrowed from a column, a stored row or a slice.
#[derive(Debug, Clone, Copy)]
pub struct List<'a>(Items<'a>);

#[derive(Debug, Clone, Copy)]
enum Items<'a> {
    Column { items: &'a dyn Array, start: usize, end: usize },
    Encoded(EncodedList<'a>),
    Values(&'a [Value<'a>]),
}

impl<'a> List<'a> {
    /// Creates a list of `values`.
    #[must_use]
    pub const fn from_values(values: &'a [Value<'a>]) -> List<'a> {
        List(Items::Values(values))
    }

    /// Creates a list of the elements `start..end` of a list array's items, whose type [`ColumnValues`] must support.
    pub(crate) const fn from_column(items: &'a dyn Array, start: usize, end: usize) -> List<'a> {
        List(Items::Column { items, start, end })
    }

    /// Creates a list from its encoding in a validated row.
    pub(crate) const fn from_encoded(list: EncodedList<'a>) -> List<'a> {
        List(Items::Encoded(list))
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Items::Column { start, end, .. } => end - start,
            Items::Encoded(list) => list.len(),
            Items::Values(values) => values.len(),
        }
    }

    /// Whether the list has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the elements in order.
    #[must_use]
    pub fn iter(&self) -> ListIter<'a> {
        ListIter(match self.0 {
            Items::Column { items, start, end } => Iter::Column {
                values: ColumnValues::new(items).expect("ColumnValues::new checked the type of the list's items"),
                rows: start..end,
            },
            Items::Encoded(list) => Iter::Encoded(list.iter()),
            Items::Values(values) => Iter::Values(values.iter()),
        })
    }
}

/// Iterator over a list's elements.
#[derive(Debug)]
pub struct ListIter<'a>(Iter<'a>);

#[derive(Debug)]
enum Iter<'a> {
    Column { values: ColumnValues<'a>, rows: std::ops::Range<usize> },
    Encoded(EncodedItems<'a>),
    Values(std::slice::Iter<'a, Value<'a>>),
}

impl<'a> Iterator for ListIter<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match &mut self.0 {
            Iter::Column { values, rows } => rows.next().map(|row| values.get(row)),
            Iter::Encoded(items) => items.next(),
            Iter::Values(values) => values.next().copied(),
        }
    }
}
