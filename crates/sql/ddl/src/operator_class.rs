//! Operator classes of indexes. Text sorts by its bytes only, so all classes that PostgreSQL has for a type give the
//! same order or find the same rows.

use datafusion::sql::sqlparser::ast::ObjectName;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::name_resolution;

/// Returns the default btree operator class of a type.
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has an operator class")]
fn default_class(sql_type: &SqlType) -> &'static str {
    match sql_type {
        SqlType::Bool => "bool_ops",
        SqlType::Int2 => "int2_ops",
        SqlType::Int4 => "int4_ops",
        SqlType::Int8 => "int8_ops",
        SqlType::Float4 => "float4_ops",
        SqlType::Float8 => "float8_ops",
        SqlType::Numeric { .. } => "numeric_ops",
        SqlType::Char(_) => "bpchar_ops",
        SqlType::Bytea => "bytea_ops",
        SqlType::Date => "date_ops",
        SqlType::Time => "time_ops",
        SqlType::Timestamp => "timestamp_ops",
        SqlType::TimestampTz => "timestamptz_ops",
        SqlType::Interval => "interval_ops",
        SqlType::Uuid => "uuid_ops",
        SqlType::Jsonb => "jsonb_ops",
        SqlType::Array(_) => "array_ops",
        SqlType::Oid => "oid_ops",
        SqlType::Name => "name_ops",
        SqlType::InternalChar => "char_ops",
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Json
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => "text_ops",
    }
}

/// Operator classes of PostgreSQL that are no type's default.
const NON_DEFAULT_CLASSES: [&str; 19] = [
    "bit_ops",
    "bpchar_pattern_ops",
    "cidr_ops",
    "enum_ops",
    "inet_ops",
    "macaddr8_ops",
    "macaddr_ops",
    "money_ops",
    "multirange_ops",
    "oidvector_ops",
    "pg_lsn_ops",
    "range_ops",
    "record_image_ops",
    "record_ops",
    "text_pattern_ops",
    "tid_ops",
    "timetz_ops",
    "varchar_ops",
    "varchar_pattern_ops",
];

/// Checks an index column's operator class and returns its name as PostgreSQL displays it; `None` for the type's
/// default.
///
/// # Errors
/// `42704` for an unknown class, `42804` for one of another type.
pub(super) fn check_class(class: &ObjectName, sql_type: &SqlType) -> SqlResult<Option<String>> {
    let plain = name_resolution::join_name(class);
    let class = plain.strip_prefix("pg_catalog.").unwrap_or(&plain);
    if class == default_class(sql_type) {
        return Ok(None);
    }
    let others: &[&str] = match sql_type {
        SqlType::Text | SqlType::Varchar(_) => &["text_pattern_ops", "varchar_ops", "varchar_pattern_ops"],
        SqlType::Char(_) => &["bpchar_pattern_ops"],
        _ => &[],
    };
    if others.contains(&class) {
        return Ok(Some(class.to_owned()));
    }
    let is_known = NON_DEFAULT_CLASSES.contains(&class)
        || SqlType::scalars().any(|known| default_class(&known) == class)
        || class == "array_ops";
    if is_known {
        let message = format!("operator class \"{class}\" does not accept data type {sql_type}");
        return Err(SqlError::new(Condition::DatatypeMismatch, message));
    }
    let message = format!("operator class \"{class}\" does not exist for access method \"btree\"");
    Err(SqlError::new(Condition::UndefinedObject, message))
}
