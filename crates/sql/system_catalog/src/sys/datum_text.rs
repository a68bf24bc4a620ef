//! Values of statistics as SQL text.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its bounds are shown")]

use shards::Datum;
use types::text;
use types::{SqlType, TypeGroup};

/// Formats a value of the statistics of a column as SQL text. Timestamps with time zone are in UTC.
pub(crate) fn format_datum(value: &Datum, sql_type: &SqlType) -> String {
    let mut out = String::new();
    match value {
        Datum::Bool(value) => return value.to_string(),
        Datum::Int(value) => format_int(*value, sql_type, &mut out),
        Datum::Decimal(value) => {
            let scale = if let SqlType::Numeric { scale, .. } = sql_type { *scale } else { 0 };
            text::format_numeric(*value, scale, &mut out);
        }
        Datum::Float(value) => text::format_float8(*value, &mut out),
        Datum::Text(value) => return value.clone(),
        Datum::Bytes(value) => match <&[u8; 16]>::try_from(value.as_slice()) {
            Ok(bytes) if sql_type.group() == TypeGroup::Uuid => text::format_uuid(bytes, &mut out),
            _ => text::format_bytea(value, &mut out),
        },
    }
    out
}

fn format_int(value: i64, sql_type: &SqlType, out: &mut String) {
    match sql_type.group() {
        TypeGroup::Date => text::format_date(i32::try_from(value).unwrap_or(i32::MAX), out),
        TypeGroup::Time => text::format_time(value, out),
        TypeGroup::Timestamp => text::format_timestamp(value, out),
        TypeGroup::Integer
        | TypeGroup::Oid
        | TypeGroup::RegType
        // Their statistics are no integers.
        | TypeGroup::Boolean
        | TypeGroup::Numeric
        | TypeGroup::Float
        | TypeGroup::Text
        | TypeGroup::InternalChar
        | TypeGroup::Interval
        | TypeGroup::Bytea
        | TypeGroup::Uuid
        | TypeGroup::Json
        | TypeGroup::Array
        | TypeGroup::Vector
        | TypeGroup::Unknown => text::format_int(value, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_shown_in_the_form_of_their_type() {
        let cases = [
            (Datum::Int(-1), SqlType::Date, "1969-12-31"),
            (Datum::Int(1), SqlType::Time, "00:00:00.000001"),
            (Datum::Int(0), SqlType::TimestampTz, "1970-01-01 00:00:00"),
            (Datum::Int(-7), SqlType::Int8, "-7"),
            (Datum::Decimal(150), SqlType::Numeric { precision: 5, scale: 2 }, "1.50"),
            (Datum::Float(-0.5), SqlType::Float4, "-0.5"),
            (Datum::Bool(true), SqlType::Bool, "true"),
            (Datum::Bytes(vec![0, 255]), SqlType::Bytea, "\\x00ff"),
            (Datum::Bytes(vec![0x11; 16]), SqlType::Bytea, "\\x11111111111111111111111111111111"),
            (Datum::Bytes(vec![0x11; 16]), SqlType::Uuid, "11111111-1111-1111-1111-111111111111"),
        ];
        for (datum, sql_type, text) in cases {
            assert_eq!(format_datum(&datum, &sql_type), text, "{sql_type}");
        }
    }
}
