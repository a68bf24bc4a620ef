//! Uniform iteration over values of Arrow arrays for statistics.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt32Type,
};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use types::SqlType;

use super::value_hash as hash;
use crate::datum::compare_floats;
use crate::{Datum, Result};

/// Visitor of the values of an array, generic over their kind.
pub(super) trait ValueVisitor {
    type Output;

    /// Visits values with an order; `datum` converts one to a value that outlives the array.
    fn visit_ordered<T: Copy>(
        self,
        values: impl Iterator<Item = Option<T>>,
        order: impl Fn(T, T) -> Ordering,
        hash: impl Fn(T) -> u64,
        datum: impl Fn(T) -> Datum,
    ) -> Self::Output;

    /// Visits numbers without NULLs.
    fn visit_numbers<T: Copy + Ord>(
        self,
        values: &[T],
        hash: impl Fn(T) -> u64,
        datum: impl Fn(T) -> Datum,
    ) -> Self::Output;

    /// Visits strings without NULLs.
    fn visit_texts(self, values: &StringViewArray, hash: impl Fn(&[u8]) -> u64) -> Self::Output;

    /// Visits values without an order, given as hashes.
    fn visit_unordered(self, hashes: impl Iterator<Item = Option<u64>>) -> Self::Output;
}

/// Passes the values of `array`, a column of `sql_type`, to a visitor.
pub(super) fn visit<V: ValueVisitor>(array: &ArrayRef, sql_type: &SqlType, visit: V) -> Result<V::Output> {
    macro_rules! integers {
        ($arrow:ty) => {{
            let values = array.as_primitive::<$arrow>();
            let (hash, datum) = (|value| hash::int(i64::from(value)), |value| Datum::Int(i64::from(value)));
            if values.null_count() == 0 {
                return Ok(visit.visit_numbers(values.values(), hash, datum));
            }
            visit.visit_ordered(values.iter(), |a, b| a.cmp(&b), hash, datum)
        }};
    }
    macro_rules! floats {
        ($arrow:ty) => {{
            let values = array.as_primitive::<$arrow>().iter().map(|value| value.map(f64::from));
            visit.visit_ordered(values, compare_floats, hash::float, Datum::Float)
        }};
    }
    macro_rules! bytes {
        ($values:expr) => {
            visit.visit_ordered(
                $values,
                |a: &[u8], b: &[u8]| a.cmp(b),
                hash::bytes,
                |value| Datum::Bytes(value.to_vec()),
            )
        };
    }
    Ok(match array.data_type() {
        DataType::Utf8View if matches!(sql_type, SqlType::Json | SqlType::Jsonb) => visit
            .visit_unordered(array.as_string_view().iter().map(|text| text.map(|text| hash::bytes(text.as_bytes())))),
        DataType::Utf8View if array.null_count() == 0 => visit.visit_texts(array.as_string_view(), hash::bytes),
        DataType::Utf8View => visit.visit_ordered(
            array.as_string_view().iter(),
            |a, b| a.as_bytes().cmp(b.as_bytes()),
            |text: &str| hash::bytes(text.as_bytes()),
            |text| Datum::Text(text.to_owned()),
        ),
        DataType::Binary => bytes!(array.as_binary::<i32>().iter()),
        DataType::FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary().iter()),
        DataType::Boolean => {
            let values = array.as_boolean().iter();
            visit.visit_ordered(values, |a, b| a.cmp(&b), |value| hash::int(i64::from(value)), Datum::Bool)
        }
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::Date32 => integers!(Date32Type),
        DataType::Time64(TimeUnit::Microsecond) => integers!(Time64MicrosecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => integers!(TimestampMicrosecondType),
        DataType::Float32 => floats!(Float32Type),
        DataType::Float64 => floats!(Float64Type),
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            if values.null_count() == 0 {
                return Ok(visit.visit_numbers(values.values(), hash::decimal, Datum::Decimal));
            }
            visit.visit_ordered(values.iter(), |a, b| a.cmp(&b), hash::decimal, Datum::Decimal)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => visit.visit_unordered(
            array.as_primitive::<IntervalMonthDayNanoType>().iter().map(|value| value.map(hash::interval)),
        ),
        DataType::List(_) => {
            let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())])?;
            let rows = converter.convert_columns(std::slice::from_ref(array))?;
            visit.visit_unordered(
                rows.iter().enumerate().map(|(row, value)| array.is_valid(row).then(|| hash::bytes(value.as_ref()))),
            )
        }
        other => {
            return Err(
                ArrowError::SchemaError(format!("no column statistics for values of Arrow type {other}")).into()
            );
        }
    })
}
