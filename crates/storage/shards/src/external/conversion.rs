//! Conversion of columns of external files to SQL types.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, SchemaRef};
use types::SqlType;
use types::sql_type::NUMERIC_PRECISION_MAX;

use crate::stored_types::decode_stored;
use crate::{Error, Result};

/// Returns the SQL type that corresponds to a column of a file; `None` for unsupported ones: nested values, and
/// decimals of too many digits.
#[must_use]
pub fn suggest_sql_type(field: &Field) -> Option<SqlType> {
    match field.data_type() {
        DataType::Null => Some(SqlType::Text),
        DataType::Interval(_) | DataType::Duration(_) => None,
        DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale)
            if NUMERIC_PRECISION_MAX < *digits || *scale < 0 =>
        {
            None
        }
        nested if nested.is_nested() => None,
        _ => SqlType::from_arrow_field(field),
    }
}

/// Returns true if columns of files can have this type without a check of their text.
#[must_use]
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until files can have it or not")]
pub fn is_supported(wanted: &SqlType) -> bool {
    match wanted {
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Interval
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Varchar(None) => true,
        SqlType::Varchar(Some(_))
        | SqlType::Char(_)
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_)
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
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => false,
    }
}

/// Returns true if values of a file's column can be converted to the type by a monotonic conversion, so that bounds
/// stay valid.
#[must_use]
pub fn is_convertible(field: &Field, wanted: &SqlType) -> bool {
    if *field.data_type() == DataType::Null {
        return is_supported(wanted);
    }
    if *wanted == SqlType::Interval {
        // The form in which Kiln writes intervals.
        return *field.data_type() == DataType::FixedSizeBinary(16);
    }
    let Some(found) = suggest_sql_type(field) else { return false };
    let is_integer = |sql_type: &SqlType| matches!(sql_type, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let is_decimal = |sql_type: &SqlType| matches!(sql_type, SqlType::Numeric { .. });
    let is_float = |sql_type: &SqlType| matches!(sql_type, SqlType::Float4 | SqlType::Float8);
    let is_moment = |sql_type: &SqlType| matches!(sql_type, SqlType::Timestamp | SqlType::TimestampTz);
    let is_like = match (&found, wanted) {
        (SqlType::Text, SqlType::Varchar(None)) => true,
        (SqlType::Date, to) if is_moment(to) => true,
        (from, to) if is_integer(from) => is_integer(to) || is_decimal(to) || is_float(to),
        (from, to) if is_decimal(from) => is_decimal(to) || is_float(to),
        (from, to) if is_float(from) => is_float(to),
        (from, to) if is_moment(from) => is_moment(to),
        (from, to) => from == to && is_supported(to),
    };
    is_like && can_cast_types(field.data_type(), &wanted.arrow_type())
}

/// Returns the position of a column by name; a name that differs in case matches if it is the only one.
#[must_use]
pub fn find_column(schema: &SchemaRef, name: &str) -> Option<usize> {
    if let Some((position, _)) = schema.fields().find(name) {
        return Some(position);
    }
    let name = name.to_lowercase();
    let mut alike = schema.fields().iter().enumerate().filter(|(_, field)| field.name().to_lowercase() == name);
    match (alike.next(), alike.next()) {
        (Some((position, _)), None) => Some(position),
        _ => None,
    }
}

/// Converts values of a file's column to `sql_type`, which [`is_convertible`] must accept.
pub(crate) fn convert(values: &ArrayRef, column: &Field, sql_type: &SqlType, object: &str) -> Result<ArrayRef> {
    let wanted = sql_type.arrow_type();
    let values = if *values.data_type() == wanted {
        Arc::clone(values)
    } else if *sql_type == SqlType::Interval {
        decode_stored(values, sql_type)?
    } else {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(values, &wanted, &options).map_err(|error| Error::OutOfRange {
            object: object.to_owned(),
            column: column.name().clone(),
            wanted: sql_type.to_string(),
            reason: error.to_string(),
        })?
    };
    if !column.is_nullable() && 0 < values.null_count() {
        return Err(Error::Null { object: object.to_owned(), column: column.name().clone() });
    }
    Ok(values)
}
