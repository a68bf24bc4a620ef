//! Conversion of values of Arrow arrays to datums.

use arrow::array::{Array, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt32Type,
};

use super::Datum;

impl Datum {
    /// Returns the value at `row`; `None` for NULL and for types without datums.
    #[must_use]
    pub fn from_array(values: &dyn Array, row: usize) -> Option<Datum> {
        if values.is_null(row) {
            return None;
        }
        Some(match values.data_type() {
            DataType::Boolean => Datum::Bool(values.as_boolean().value(row)),
            DataType::Int16 => int::<Int16Type>(values, row),
            DataType::Int32 => int::<Int32Type>(values, row),
            DataType::Int64 => int::<Int64Type>(values, row),
            DataType::UInt32 => int::<UInt32Type>(values, row),
            DataType::Date32 => int::<Date32Type>(values, row),
            DataType::Time64(TimeUnit::Microsecond) => int::<Time64MicrosecondType>(values, row),
            DataType::Timestamp(TimeUnit::Microsecond, _) => int::<TimestampMicrosecondType>(values, row),
            DataType::Decimal128(..) => Datum::Decimal(values.as_primitive::<Decimal128Type>().value(row)),
            DataType::Float32 => Datum::Float(f64::from(values.as_primitive::<Float32Type>().value(row))),
            DataType::Float64 => Datum::Float(values.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8View => Datum::Text(values.as_string_view().value(row).to_owned()),
            DataType::Utf8 => Datum::Text(values.as_string::<i32>().value(row).to_owned()),
            DataType::Binary => Datum::Bytes(values.as_binary::<i32>().value(row).to_owned()),
            DataType::FixedSizeBinary(_) => Datum::Bytes(values.as_fixed_size_binary().value(row).to_owned()),
            _ => return None,
        })
    }
}

fn int<T: ArrowPrimitiveType<Native: Into<i64>>>(values: &dyn Array, row: usize) -> Datum {
    Datum::Int(values.as_primitive::<T>().value(row).into())
}
