//! Fallibility of casts, by the types and the kind of the cast.

use types::SqlType;
use types::numeric::NumericPrecision;

use super::{CastKind, is_arrow_cast, is_text};
use crate::fallibility::Fallibility;

/// Returns the degree to which a cast can fail.
pub(super) fn cast_fallibility(from: &SqlType, to: &SqlType, kind: CastKind) -> Fallibility {
    use SqlType as T;
    if is_arrow_cast(from, to) {
        return Fallibility::Never;
    }
    match (from, to) {
        // An assignment rejects text that is too long, as does a cast of other values to a blank-padded type.
        (from, T::Varchar(Some(_)) | T::Char(Some(_)) | T::Name | T::InternalChar) => {
            let cuts = match kind {
                CastKind::Comparison => true,
                CastKind::Explicit => is_text(from) || matches!(to, T::Varchar(_) | T::Char(_)),
                CastKind::Assignment => false,
            };
            if cuts { Fallibility::Never } else { Fallibility::ForSomeValues }
        }
        (_, T::Text | T::Varchar(None) | T::Char(None)) => Fallibility::Never,
        (T::Array(from), T::Array(to)) => cast_fallibility(from, to, kind),
        (T::Date | T::Time | T::Timestamp | T::TimestampTz | T::Interval, _)
        | (T::Bool, T::Int4)
        | (T::Int4, T::Bool)
        | (T::Jsonb, T::Json)
        | (T::Numeric { .. } | T::Float4 | T::Int2 | T::Int4 | T::Int8, T::Float8)
        | (T::Int2 | T::Int4 | T::Int8, T::Float4) => Fallibility::Never,
        (from, to) if from.is_oid() && (to.is_oid() || *to == T::Int8) => Fallibility::Never,
        (from, to) if is_number(from) && is_number(to) => number_cast_fallibility(from, to),
        _ => Fallibility::ForSomeValues,
    }
}

fn is_number(sql_type: &SqlType) -> bool {
    use SqlType as T;
    sql_type.is_oid() || matches!(sql_type, T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. } | T::Float4 | T::Float8)
}

/// Returns the degree to which a cast to a number type that does not have every value can fail.
fn number_cast_fallibility(from: &SqlType, to: &SqlType) -> Fallibility {
    let range = if *to == SqlType::BARE_NUMERIC { Fallibility::BeyondDigits } else { Fallibility::OnOverflow };
    let Some(digits) = NumericPrecision::from_sql_type(from) else { return range };
    let (room, to_scale) = match to {
        SqlType::Int2 => (4, 0),
        SqlType::Int4 => (9, 0),
        SqlType::Int8 => (18, 0),
        SqlType::Numeric { precision, scale } => (precision - scale, *scale),
        _ => return range,
    };
    // Rounding can carry into one more digit.
    let carried = u8::from(to_scale < digits.scale);
    if digits.precision - digits.scale + carried <= room { Fallibility::Never } else { range }
}
