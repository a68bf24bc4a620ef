//! Column types in shard files: those of memory, except for intervals, since Parquet's type for them does not store
//! microseconds.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a form in files")]

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, IntervalMonthDayNanoArray, ListArray};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow::error::ArrowError;
use types::SqlType;

use crate::{ColumnDef, Error, Result};

#[cfg(test)]
mod tests;

/// Size in bytes of a stored interval: months (`i32`), days (`i32`), microseconds (`i64`), little-endian.
const INTERVAL_BYTES: i32 = 16;
const NANOS_PER_MICRO: i64 = 1_000;

/// Returns the Arrow field of a column in a file.
#[must_use]
pub fn stored_field(column: &ColumnDef) -> Field {
    Field::new(&column.name, stored_type(&column.sql_type), column.nullable)
}

fn stored_type(sql_type: &SqlType) -> DataType {
    match sql_type {
        SqlType::Interval => DataType::FixedSizeBinary(INTERVAL_BYTES),
        SqlType::Array(element) => stored_list_type(element),
        SqlType::Int2Vector => stored_list_type(&SqlType::Int2),
        SqlType::OidVector => stored_list_type(&SqlType::Oid),
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Unknown => sql_type.arrow_type(),
    }
}

fn stored_list_type(element: &SqlType) -> DataType {
    DataType::List(Arc::new(Field::new("element", stored_type(element), true)))
}

/// Converts values from their SQL type's Arrow type to the type in files.
#[expect(clippy::wildcard_enum_match_arm, reason = "Arrow's types; `stored_type` says what SQL's become")]
pub fn to_stored(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Interval(_) => {
            let intervals =
                values.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(|| unexpected_type_error(values))?;
            let stored = intervals.iter().map(|interval| interval.map(interval_to_bytes));
            Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(stored, INTERVAL_BYTES)?))
        }
        DataType::List(_) => {
            let list = values.as_list::<i32>();
            let elements = to_stored(list.values())?;
            let field = Field::new("element", elements.data_type().clone(), true);
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(Arc::new(field), offsets, elements, nulls)?))
        }
        _ => Ok(Arc::clone(values)),
    }
}

/// Converts values from the type in files, that of [`stored_field`], to the Arrow type of `sql_type`.
pub fn decode_stored(stored: &ArrayRef, sql_type: &SqlType) -> Result<ArrayRef> {
    match sql_type {
        SqlType::Interval => {
            let bytes = stored.as_fixed_size_binary_opt().ok_or_else(|| unexpected_type_error(stored))?;
            if bytes.value_length() != INTERVAL_BYTES {
                return Err(unexpected_type_error(stored));
            }
            let intervals = bytes.iter().map(|bytes| bytes.map(interval_from_bytes));
            Ok(Arc::new(intervals.collect::<IntervalMonthDayNanoArray>()))
        }
        SqlType::Array(element) => decode_stored_list(stored, element),
        SqlType::Int2Vector => decode_stored_list(stored, &SqlType::Int2),
        SqlType::OidVector => decode_stored_list(stored, &SqlType::Oid),
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Unknown => Ok(Arc::clone(stored)),
    }
}

fn decode_stored_list(stored: &ArrayRef, element: &SqlType) -> Result<ArrayRef> {
    let list = stored.as_list_opt::<i32>().ok_or_else(|| unexpected_type_error(stored))?;
    let elements = decode_stored(list.values(), element)?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    Ok(Arc::new(ListArray::try_new(Arc::new(element.item_field()), offsets, elements, nulls)?))
}

fn interval_to_bytes(interval: IntervalMonthDayNano) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&interval.months.to_le_bytes());
    bytes[4..8].copy_from_slice(&interval.days.to_le_bytes());
    bytes[8..].copy_from_slice(&(interval.nanoseconds / NANOS_PER_MICRO).to_le_bytes());
    bytes
}

/// Decodes an interval. More microseconds than fit as nanoseconds (292 years) saturate; Kiln never writes such values.
fn interval_from_bytes(bytes: &[u8]) -> IntervalMonthDayNano {
    let part = |from: usize| i32::from_le_bytes(bytes[from..from + 4].try_into().expect("four bytes"));
    let microseconds = i64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
    IntervalMonthDayNano::new(part(0), part(4), microseconds.saturating_mul(NANOS_PER_MICRO))
}

fn unexpected_type_error(values: &ArrayRef) -> Error {
    Error::Arrow(ArrowError::SchemaError(format!(
        "a stored column has values of the unexpected Arrow type {}",
        values.data_type()
    )))
}
