//! Types that keys can have, and types that foreign keys may relate.

use types::{Condition, SqlError, SqlType};

/// Whether values of the type have an order, as key and SORT columns need.
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it is known to be a key or not")]
pub(super) fn has_order(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Json => false,
        SqlType::Array(element) => has_order(element),
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
        | SqlType::Interval
        | SqlType::Bytea
        | SqlType::Uuid
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
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => true,
    }
}

/// Whether a foreign key of type `referring` can refer to a key of type `key`: PostgreSQL has an equality operator for
/// the two, or casts `referring` to `key` implicitly.
pub(super) fn keys_match(key: &SqlType, referring: &SqlType) -> bool {
    use SqlType as T;
    match (key, referring) {
        (T::Int2 | T::Int4 | T::Int8, T::Int2 | T::Int4 | T::Int8)
        | (T::Numeric { .. }, T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. })
        | (T::Float4 | T::Float8, T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. } | T::Float4 | T::Float8)
        | (T::Text | T::Varchar(_) | T::Char(_), T::Text | T::Varchar(_) | T::Char(_))
        | (T::Date | T::Timestamp | T::TimestampTz, T::Date | T::Timestamp | T::TimestampTz) => true,
        (T::Array(key), T::Array(referring)) => std::mem::discriminant(&**key) == std::mem::discriminant(&**referring),
        (key, referring) => std::mem::discriminant(key) == std::mem::discriminant(referring),
    }
}

/// Returns the error for a key column whose type has no order (`42704`).
pub(super) fn unordered_type(sql_type: &SqlType) -> SqlError {
    let message = format!("data type {sql_type} has no default operator class for access method \"btree\"");
    SqlError::new(Condition::UndefinedObject, message).with_hint(
        "You must specify an operator class for the index or define a default operator class for the data type.",
    )
}
