//! Which types stand in for which: implicit casts, and the type that several expressions share.

use types::numeric::Digits;
use types::{Condition, SqlError, SqlResult, SqlType};

/// PostgreSQL's type categories, as far as resolution needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Boolean,
    Number,
    String,
    DateTime,
    Timespan,
    Array,
    Unknown,
    Other,
}

/// The category of a type.
pub(crate) fn category(sql_type: &SqlType) -> Category {
    match sql_type {
        SqlType::Bool => Category::Boolean,
        SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => Category::Number,
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name | SqlType::InternalChar => {
            Category::String
        }
        SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => Category::DateTime,
        SqlType::Interval => Category::Timespan,
        SqlType::Array(_) => Category::Array,
        SqlType::Unknown => Category::Unknown,
        _ => Category::Other,
    }
}

/// Whether the type is the preferred one of its category.
pub(crate) fn is_preferred(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Bool | SqlType::Float8 | SqlType::Text | SqlType::TimestampTz | SqlType::Interval | SqlType::Oid
    )
}

/// Whether two types are the same but for their modifiers.
pub(crate) fn same_kind(a: &SqlType, b: &SqlType) -> bool {
    match (a, b) {
        (SqlType::Array(a), SqlType::Array(b)) => same_kind(a, b),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// Whether a value of `from` becomes a `to` by itself where a `to` is wanted.
pub(crate) fn is_implicit(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    if same_kind(from, to) {
        return true;
    }
    let rank = |sql_type: &SqlType| match sql_type {
        T::Int2 => Some(0),
        T::Int4 => Some(1),
        T::Int8 => Some(2),
        T::Numeric { .. } => Some(3),
        T::Float4 => Some(4),
        T::Float8 => Some(5),
        _ => None,
    };
    if let (Some(from), Some(to)) = (rank(from), rank(to)) {
        return from < to;
    }
    match (from, to) {
        (T::Unknown, _)
        | (T::Char(_) | T::Varchar(_) | T::Name | T::InternalChar, T::Text)
        | (T::Char(_) | T::Text, T::Varchar(_))
        | (T::Text | T::Varchar(_), T::Char(_) | T::Name)
        | (T::Date, T::Timestamp | T::TimestampTz)
        | (T::Timestamp, T::TimestampTz)
        | (T::Time, T::Interval)
        | (T::Int2 | T::Int4 | T::Int8, T::Oid) => true,
        (T::Int2 | T::Int4 | T::Int8 | T::Oid, to) if to.names_objects() => true,
        (from, T::Oid) if from.names_objects() => true,
        (from, T::Int8) if from.is_oid() => true,
        (T::Array(from), T::Array(to)) => is_implicit(from, to),
        _ => false,
    }
}

/// The type that all of `types` take in a CASE, COALESCE, VALUES or UNION; `context` is for the message of `42804`.
pub(crate) fn common_type(types: &[SqlType], context: &str) -> SqlResult<SqlType> {
    let mut known = types.iter().filter(|sql_type| **sql_type != SqlType::Unknown);
    let Some(first) = known.next() else { return Ok(SqlType::Text) };
    let mut chosen = first.clone();
    for other in known {
        chosen = shared(&chosen, other).ok_or_else(|| {
            SqlError::new(
                Condition::DatatypeMismatch,
                format!("{context} types {} and {} cannot be matched", plain(&chosen), plain(other)),
            )
        })?;
    }
    Ok(chosen)
}

/// The type two known types share, if there is one.
pub(crate) fn shared(a: &SqlType, b: &SqlType) -> Option<SqlType> {
    if a == b {
        return Some(a.clone());
    }
    if (matches!(a, SqlType::Numeric { .. }) || matches!(b, SqlType::Numeric { .. }))
        && let (Some(a), Some(b)) = (Digits::of(a), Digits::of(b))
    {
        return Some(a.union_with(b).sql_type());
    }
    match (a, b) {
        (SqlType::Varchar(_), SqlType::Varchar(_)) => return Some(SqlType::Varchar(None)),
        // Without a length char(n) cannot be padded: its values go on as text.
        (SqlType::Char(_), SqlType::Char(_) | SqlType::Varchar(_)) | (SqlType::Varchar(_), SqlType::Char(_)) => {
            return Some(SqlType::Text);
        }
        (SqlType::Array(a), SqlType::Array(b)) => return shared(a, b).map(|element| SqlType::Array(Box::new(element))),
        _ => {}
    }
    if category(a) != category(b) {
        return None;
    }
    // Number types of one category widen; of two strings one is text.
    match (is_implicit(a, b), is_implicit(b, a)) {
        (true, false) => Some(b.clone()),
        (false, true) => Some(a.clone()),
        (true, true) => Some(if is_preferred(b) { b.clone() } else { a.clone() }),
        (false, false) => None,
    }
}

/// A type's name without its modifier, as error messages give it.
pub(crate) fn plain(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::Numeric { .. } => "numeric".to_owned(),
        SqlType::Varchar(_) => "character varying".to_owned(),
        SqlType::Char(_) => "character".to_owned(),
        SqlType::Array(element) => format!("{}[]", plain(element)),
        other => other.to_string(),
    }
}
