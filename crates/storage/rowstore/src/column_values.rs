//! Reading of Arrow columns value by value; the type is dispatched once per column.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, PrimitiveArray,
    StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    UInt32Type,
};

use crate::value::List;
use crate::{Error, Result, Value};

#[cfg(test)]
mod tests;

/// Reader of the values of an array whose type is one of [`types::SqlType::arrow_type`].
#[derive(Debug, Clone)]
pub struct ColumnValues<'a> {
    nulls: Option<&'a NullBuffer>,
    values: TypedArray<'a>,
}

#[derive(Debug, Clone)]
enum TypedArray<'a> {
    Null,
    Bool(&'a BooleanArray),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt32(&'a [u32]),
    Decimal(&'a [i128]),
    Float4(&'a [f32]),
    Float8(&'a [f64]),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryArray),
    Uuid(&'a FixedSizeBinaryArray),
    Interval(&'a PrimitiveArray<IntervalMonthDayNanoType>),
    List(&'a ListArray),
}

impl<'a> ColumnValues<'a> {
    /// Creates a reader of `array`; fails with [`Error::UnsupportedType`] for Arrow types that represent no SQL type.
    pub fn new(array: &'a dyn Array) -> Result<ColumnValues<'a>> {
        let values = match array.data_type() {
            DataType::Null => TypedArray::Null,
            DataType::Boolean => TypedArray::Bool(array.as_boolean()),
            DataType::Int16 => TypedArray::Int16(primitive_values::<Int16Type>(array)),
            DataType::Int32 => TypedArray::Int32(primitive_values::<Int32Type>(array)),
            DataType::Date32 => TypedArray::Int32(primitive_values::<Date32Type>(array)),
            DataType::Int64 => TypedArray::Int64(primitive_values::<Int64Type>(array)),
            DataType::Time64(TimeUnit::Microsecond) => {
                TypedArray::Int64(primitive_values::<Time64MicrosecondType>(array))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                TypedArray::Int64(primitive_values::<TimestampMicrosecondType>(array))
            }
            DataType::UInt32 => TypedArray::UInt32(primitive_values::<UInt32Type>(array)),
            DataType::Decimal128(..) => TypedArray::Decimal(primitive_values::<Decimal128Type>(array)),
            DataType::Float32 => TypedArray::Float4(primitive_values::<Float32Type>(array)),
            DataType::Float64 => TypedArray::Float8(primitive_values::<Float64Type>(array)),
            DataType::Utf8View => TypedArray::Text(array.as_string_view()),
            DataType::Binary => TypedArray::Bytes(array.as_binary()),
            DataType::FixedSizeBinary(_) => TypedArray::Uuid(array.as_fixed_size_binary()),
            DataType::Interval(IntervalUnit::MonthDayNano) => TypedArray::Interval(array.as_primitive()),
            DataType::List(_) => {
                let list: &ListArray = array.as_list();
                ColumnValues::new(list.values().as_ref())?;
                TypedArray::List(list)
            }
            other => return Err(Error::UnsupportedType(other.clone())),
        };
        Ok(ColumnValues { nulls: array.nulls(), values })
    }

    /// Creates readers of all columns of a batch.
    pub fn for_columns(columns: &'a [ArrayRef]) -> Result<Vec<ColumnValues<'a>>> {
        columns.iter().map(|column| ColumnValues::new(column.as_ref())).collect()
    }

    /// Returns the value in row `row`, which must be less than the array's length.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> Value<'a> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Value::Null;
        }
        match self.values {
            TypedArray::Null => Value::Null,
            TypedArray::Bool(array) => Value::Bool(array.value(row)),
            TypedArray::Int16(values) => Value::Int(i64::from(values[row])),
            TypedArray::Int32(values) => Value::Int(i64::from(values[row])),
            TypedArray::Int64(values) => Value::Int(values[row]),
            TypedArray::UInt32(values) => Value::Int(i64::from(values[row])),
            TypedArray::Decimal(values) => Value::Decimal(values[row]),
            TypedArray::Float4(values) => Value::Float4(values[row]),
            TypedArray::Float8(values) => Value::Float8(values[row]),
            TypedArray::Text(array) => Value::Text(array.value(row)),
            TypedArray::Bytes(array) => Value::Bytes(array.value(row)),
            TypedArray::Uuid(array) => Value::Bytes(array.value(row)),
            TypedArray::Interval(array) => {
                let interval = array.value(row);
                Value::Interval { months: interval.months, days: interval.days, nanos: interval.nanoseconds }
            }
            TypedArray::List(array) => {
                let offsets = array.value_offsets();
                let at = |index: usize| usize::try_from(offsets[index]).expect("Arrow list offsets are not negative");
                Value::List(List::from_column(array.values().as_ref(), at(row), at(row + 1)))
            }
        }
    }
}

fn primitive_values<T: ArrowPrimitiveType>(array: &dyn Array) -> &[T::Native] {
    array.as_primitive::<T>().values()
}
