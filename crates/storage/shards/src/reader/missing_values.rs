//! Missing values: the value that a column has in shards written before it existed (PostgreSQL's `attmissingval`).

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new type must not compile until defaults of added columns are parsed"
)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, ListArray, PrimitiveArray,
    StringViewArray, UInt32Array, new_null_array,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use types::{SessionZone, SqlResult, SqlType, text};

use crate::{ColumnDef, Datum, Error, Result};

/// Missing value of a column.
#[derive(Debug)]
pub(crate) struct MissingValue {
    /// Array of length 1.
    value: ArrayRef,
}

impl MissingValue {
    /// Parses the missing value of a column.
    pub(super) fn new(column: &ColumnDef) -> Result<Self> {
        let value = missing_value(&column.sql_type, column.missing.as_deref()).map_err(|error| Error::Damaged {
            object: format!("column {}", column.name),
            reason: format!("its value for older shards is not of type {}: {error}", column.sql_type),
        })?;
        Ok(Self { value })
    }

    /// Returns the value; `None` for NULL and for types without order.
    pub(super) fn datum(&self) -> Option<Datum> {
        Datum::from_array(&*self.value, 0)
    }

    /// Returns an array that repeats the value.
    pub(crate) fn repeat(&self, rows: usize) -> Result<ArrayRef> {
        Ok(take(&self.value, &UInt32Array::from_value(0, rows), None)?)
    }
}

/// Returns an array of length 1 with the missing value that `text` spells; NULL without text.
///
/// # Errors
/// If `text` is not a value of the type.
pub fn missing_value(sql_type: &SqlType, text: Option<&str>) -> SqlResult<ArrayRef> {
    match text {
        Some(text) => value(text, sql_type),
        None => Ok(new_null_array(&sql_type.arrow_type(), 1)),
    }
}

/// Parses `text` as a value of a type, into an array of length 1.
fn value(text: &str, sql_type: &SqlType) -> SqlResult<ArrayRef> {
    Ok(match sql_type {
        SqlType::Bool => Arc::new(BooleanArray::from(vec![text::parse_bool(text)?])),
        SqlType::Int2 => one_value_array::<Int16Type>(text::parse_int2(text)?),
        SqlType::Int4 => one_value_array::<Int32Type>(text::parse_int4(text)?),
        SqlType::Int8 => one_value_array::<Int64Type>(text::parse_int8(text)?),
        SqlType::Numeric { precision, scale } => {
            let value = text::parse_numeric(text, *precision, *scale)?;
            Arc::new(Decimal128Array::from(vec![value]).with_data_type(sql_type.arrow_type()))
        }
        SqlType::Float4 => one_value_array::<Float32Type>(text::parse_float4(text)?),
        SqlType::Float8 => one_value_array::<Float64Type>(text::parse_float8(text)?),
        // The text in the catalog has no padding, as a cast of `char(n)` to text removes it.
        SqlType::Char(Some(length)) => {
            let width = usize::try_from(*length).expect("32 bits fit a usize");
            Arc::new(StringViewArray::from(vec![format!("{text:width$}")]))
        }
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(None)
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Unknown => Arc::new(StringViewArray::from(vec![text])),
        SqlType::Date => one_value_array::<Date32Type>(text::parse_date(text)?),
        SqlType::Time => one_value_array::<Time64MicrosecondType>(text::parse_time(text)?),
        SqlType::Timestamp => one_value_array::<TimestampMicrosecondType>(text::parse_timestamp(text)?),
        SqlType::TimestampTz => {
            let value = text::parse_timestamptz(text, &SessionZone::UTC)?;
            Arc::new(
                PrimitiveArray::<TimestampMicrosecondType>::from_value(value, 1)
                    .with_timezone(types::arrow_field::TIMESTAMPTZ_ZONE),
            )
        }
        SqlType::Interval => {
            let span = text::parse_interval(text)?;
            let nanoseconds = span.microseconds.saturating_mul(1_000);
            one_value_array::<IntervalMonthDayNanoType>(IntervalMonthDayNano::new(span.months, span.days, nanoseconds))
        }
        SqlType::Bytea => Arc::new(BinaryArray::from(vec![text::parse_bytea(text)?.as_slice()])),
        SqlType::Uuid => {
            Arc::new(FixedSizeBinaryArray::new(16, Buffer::from(text::parse_uuid(text)?.as_slice()), None))
        }
        SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => one_value_array::<UInt32Type>(text::parse_oid(text)?),
        SqlType::Array(element) => parse_list(text, element)?,
        SqlType::Int2Vector | SqlType::OidVector => new_null_array(&sql_type.arrow_type(), 1),
    })
}

/// Returns an array of length 1.
fn one_value_array<T: ArrowPrimitiveType>(value: T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_value(value, 1))
}

/// Parses an array, into a list array of length 1.
fn parse_list(text: &str, element: &SqlType) -> SqlResult<ArrayRef> {
    let mut items: Vec<ArrayRef> = Vec::new();
    text::parse_array(text, &mut |item| {
        items.push(match item {
            Some(item) => value(item, element)?,
            None => new_null_array(&element.arrow_type(), 1),
        });
        Ok(())
    })?;
    let DataType::List(field) = SqlType::Array(Box::new(element.clone())).arrow_type() else {
        unreachable!("the Arrow type of an SQL array is a list");
    };
    let parts: Vec<&dyn Array> = items.iter().map(AsRef::as_ref).collect();
    let values = if parts.is_empty() {
        new_null_array(&element.arrow_type(), 0)
    } else {
        concat(&parts).expect("all items have the element's type")
    };
    Ok(Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([values.len()]), values, None)))
}
