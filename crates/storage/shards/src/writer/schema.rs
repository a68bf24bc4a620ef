//! Parquet types of SQL types: logical types that every reader knows, and the column's id as field id.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a Parquet type")]

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};
use types::SqlType;

use super::column_writer::ColumnWriter;

#[cfg(test)]
mod tests;

/// Digits of decimals that fit 4 and 8 bytes.
const INT32_DIGITS: u8 = 9;
const INT64_DIGITS: u8 = 18;

/// Returns the file's schema.
pub(super) fn root(columns: &[ColumnWriter]) -> Result<TypePtr> {
    let column = |column: &ColumnWriter| {
        let def = &column.column_def;
        node(&def.name, &def.sql_type, def.nullable, Some(def.id.0)).map(Arc::new)
    };
    let fields = columns.iter().map(column).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn node(name: &str, sql_type: &SqlType, nullable: bool, id: Option<i32>) -> Result<Type> {
    let repetition = if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    if let Some(element) = sql_type.element() {
        let element = Arc::new(node("element", &element, true, None)?);
        let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![element]);
        return Type::group_type_builder(name)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::List))
            .with_id(id)
            .with_fields(vec![Arc::new(list.build()?)])
            .build();
    }
    let (physical, logical) = leaf(sql_type);
    let builder =
        Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical).with_id(id);
    match sql_type {
        SqlType::Numeric { precision, scale } => builder
            .with_length(if physical == Physical::FIXED_LEN_BYTE_ARRAY { decimal_bytes(*precision) } else { -1 })
            .with_precision(i32::from(*precision))
            .with_scale(i32::from(*scale))
            .build(),
        SqlType::Interval | SqlType::Uuid => builder.with_length(16).build(),
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
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
        | SqlType::Unknown => builder.build(),
    }
}

fn leaf(sql_type: &SqlType) -> (Physical, Option<LogicalType>) {
    match sql_type {
        SqlType::Bool => (Physical::BOOLEAN, None),
        SqlType::Int2 => (Physical::INT32, Some(LogicalType::integer(16, true))),
        SqlType::Int4 => (Physical::INT32, None),
        SqlType::Int8 => (Physical::INT64, None),
        SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => (Physical::INT32, Some(LogicalType::integer(32, false))),
        SqlType::Numeric { precision, scale } => {
            let physical = match *precision {
                digits if digits <= INT32_DIGITS => Physical::INT32,
                digits if digits <= INT64_DIGITS => Physical::INT64,
                _ => Physical::FIXED_LEN_BYTE_ARRAY,
            };
            (physical, Some(LogicalType::decimal(i32::from(*scale), i32::from(*precision))))
        }
        SqlType::Float4 => (Physical::FLOAT, None),
        SqlType::Float8 => (Physical::DOUBLE, None),
        SqlType::Json | SqlType::Jsonb => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Unknown => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        SqlType::Date => (Physical::INT32, Some(LogicalType::Date)),
        SqlType::Time => (Physical::INT64, Some(LogicalType::time(false, TimeUnit::MICROS))),
        SqlType::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MICROS))),
        SqlType::TimestampTz => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        SqlType::Bytea => (Physical::BYTE_ARRAY, None),
        SqlType::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
        SqlType::Interval => (Physical::FIXED_LEN_BYTE_ARRAY, None),
        SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => unreachable!("a list is no leaf type"),
    }
}

/// Returns the number of bytes that a signed number of this precision takes.
fn decimal_bytes(precision: u8) -> i32 {
    // 10^precision < 2^(8 bytes - 1).
    let bits = f64::from(precision) * std::f64::consts::LOG2_10 + 1.0;
    (bits / 8.0).ceil() as i32
}
