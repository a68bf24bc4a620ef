//! Literals of filters in the form of a column's statistics.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its literals prune or do not")]

use datafusion::common::ScalarValue;
use shards::Datum;
use types::SqlType;

/// Returns the datum if the value matches the pattern.
macro_rules! matching {
    ($value:expr, $pattern:pat => $datum:expr) => {
        if let $pattern = $value { Some($datum) } else { None }
    };
}

/// Converts a literal to the form of the statistics of a column of `sql_type`; `None` if it has another type, and for
/// types without statistics that a literal could be compared with.
pub(super) fn literal_to_datum(value: &ScalarValue, sql_type: &SqlType) -> Option<Datum> {
    match sql_type {
        SqlType::Bool => matching!(value, ScalarValue::Boolean(Some(value)) => Datum::Bool(*value)),
        SqlType::Int2 => matching!(value, ScalarValue::Int16(Some(value)) => Datum::Int(i64::from(*value))),
        SqlType::Int4 => matching!(value, ScalarValue::Int32(Some(value)) => Datum::Int(i64::from(*value))),
        SqlType::Int8 => matching!(value, ScalarValue::Int64(Some(value)) => Datum::Int(*value)),
        SqlType::Oid => matching!(value, ScalarValue::UInt32(Some(value)) => Datum::Int(i64::from(*value))),
        SqlType::Date => matching!(value, ScalarValue::Date32(Some(value)) => Datum::Int(i64::from(*value))),
        SqlType::Time => matching!(value, ScalarValue::Time64Microsecond(Some(value)) => Datum::Int(*value)),
        SqlType::Timestamp => {
            matching!(value, ScalarValue::TimestampMicrosecond(Some(value), None) => Datum::Int(*value))
        }
        SqlType::TimestampTz => {
            matching!(value, ScalarValue::TimestampMicrosecond(Some(value), Some(_)) => Datum::Int(*value))
        }
        SqlType::Numeric { scale, .. } => {
            let ScalarValue::Decimal128(Some(value), _, found) = value else { return None };
            (i8::try_from(*scale) == Ok(*found)).then_some(Datum::Decimal(*value))
        }
        SqlType::Float4 => matching!(value, ScalarValue::Float32(Some(value)) => Datum::Float(f64::from(*value))),
        SqlType::Float8 => matching!(value, ScalarValue::Float64(Some(value)) => Datum::Float(*value)),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => matching!(
            value,
            ScalarValue::Utf8(Some(value)) | ScalarValue::Utf8View(Some(value)) | ScalarValue::LargeUtf8(Some(value))
                => Datum::Text(value.clone())
        ),
        SqlType::Bytea => matching!(value, ScalarValue::Binary(Some(value)) => Datum::Bytes(value.clone())),
        SqlType::Uuid => {
            matching!(value, ScalarValue::FixedSizeBinary(16, Some(value)) => Datum::Bytes(value.clone()))
        }
        SqlType::Interval
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_)
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
        | SqlType::Unknown => None,
    }
}
