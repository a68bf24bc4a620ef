//! The operators `+ - * / % ^ & | # << >> ||` and unary minus.
//!
//! - `zip.rs`: applies an operation row by row,
//! - `integer.rs`, `decimal.rs`, `float.rs`, `datetime.rs`: bodies over arrays, by type,
//! - `single_value.rs`: operators on single values.

mod datetime;
mod decimal;
mod float;
mod integer;
mod single_value;
mod zip;

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use types::SqlType;
use types::numeric::NumericPrecision;

pub(crate) use self::datetime::{interval_from_arrow, interval_to_arrow};
pub(crate) use self::decimal::{divide_scaled, overflow};
pub(crate) use self::float::{overflow as float_overflow, sum as float_sum};
pub(super) use self::single_value::Arithmetic;
use super::definition::{Definition, Overload, ParameterType as T, ResultType};
use super::{array, json, text};

const INT2: ResultType = ResultType::fixed(SqlType::Int2);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const INT8: ResultType = ResultType::fixed(SqlType::Int8);
const FLOAT4: ResultType = ResultType::fixed(SqlType::Float4);
const FLOAT8: ResultType = ResultType::fixed(SqlType::Float8);
const DATE: ResultType = ResultType::fixed(SqlType::Date);
const TIME: ResultType = ResultType::fixed(SqlType::Time);
const TIMESTAMP: ResultType = ResultType::fixed(SqlType::Timestamp);
const TIMESTAMPTZ: ResultType = ResultType::fixed(SqlType::TimestampTz);
const INTERVAL: ResultType = ResultType::fixed(SqlType::Interval);
const TEXT: ResultType = ResultType::fixed(SqlType::Text);

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "+",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, integer::add_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, integer::add_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, integer::add_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).addition_result(digits(a, 1)).sql_type())),
                decimal::add,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, float::add8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, float::add4),
            Overload::rows(&[T::Date, T::Int4], DATE, datetime::date_plus_days),
            Overload::rows(&[T::Int4, T::Date], DATE, datetime::days_plus_date),
            Overload::rows(&[T::Timestamp, T::Interval], TIMESTAMP, datetime::timestamp_plus),
            Overload::rows(&[T::Interval, T::Timestamp], TIMESTAMP, datetime::plus_timestamp),
            Overload::rows(&[T::TimestampTz, T::Interval], TIMESTAMPTZ, datetime::timestamptz_plus),
            Overload::rows(&[T::Interval, T::TimestampTz], TIMESTAMPTZ, datetime::plus_timestamptz),
            Overload::rows(&[T::Date, T::Interval], TIMESTAMP, datetime::date_plus),
            Overload::rows(&[T::Interval, T::Date], TIMESTAMP, datetime::plus_date),
            Overload::rows(&[T::Date, T::Time], TIMESTAMP, datetime::date_plus_time),
            Overload::rows(&[T::Time, T::Date], TIMESTAMP, datetime::time_plus_date),
            Overload::rows(&[T::Time, T::Interval], TIME, datetime::time_plus),
            Overload::rows(&[T::Interval, T::Time], TIME, datetime::plus_time),
            Overload::rows(&[T::Interval, T::Interval], INTERVAL, datetime::interval_plus),
        ],
    ),
    Definition::new(
        "-",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, integer::subtract_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, integer::subtract_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, integer::subtract_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).addition_result(digits(a, 1)).sql_type())),
                decimal::subtract,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, float::subtract8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, float::subtract4),
            Overload::rows(&[T::Date, T::Date], INT4, datetime::date_minus_date),
            Overload::rows(&[T::Date, T::Int4], DATE, datetime::date_minus_days),
            Overload::rows(&[T::Timestamp, T::Timestamp], INTERVAL, datetime::timestamp_minus_timestamp),
            Overload::rows(&[T::TimestampTz, T::TimestampTz], INTERVAL, datetime::timestamp_minus_timestamp),
            Overload::rows(&[T::Timestamp, T::Interval], TIMESTAMP, datetime::timestamp_minus),
            Overload::rows(&[T::TimestampTz, T::Interval], TIMESTAMPTZ, datetime::timestamptz_minus),
            Overload::rows(&[T::Date, T::Interval], TIMESTAMP, datetime::date_minus),
            Overload::rows(&[T::Time, T::Time], INTERVAL, datetime::time_minus_time),
            Overload::rows(&[T::Time, T::Interval], TIME, datetime::time_minus),
            Overload::rows(&[T::Interval, T::Interval], INTERVAL, datetime::interval_minus),
            Overload::rows(&[T::Jsonb, T::Text], ResultType::fixed(SqlType::Jsonb), json::remove_key),
            Overload::rows(&[T::Jsonb, T::Int4], ResultType::fixed(SqlType::Jsonb), json::remove_index),
        ],
    ),
    Definition::new(
        "*",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, integer::multiply_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, integer::multiply_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, integer::multiply_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).multiplication_result(digits(a, 1)).sql_type())),
                decimal::multiply,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, float::multiply8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, float::multiply4),
            Overload::rows(&[T::Interval, T::Float8], INTERVAL, datetime::interval_times),
            Overload::rows(&[T::Float8, T::Interval], INTERVAL, datetime::times_interval),
        ],
    ),
    Definition::new(
        "/",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, integer::divide_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, integer::divide_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, integer::divide_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).division_result(digits(a, 1)).sql_type())),
                decimal::divide,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, float::divide8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, float::divide4),
            Overload::rows(&[T::Interval, T::Float8], INTERVAL, datetime::interval_divided),
        ],
    ),
    Definition::new("%", REMAINDER),
    Definition::new("mod", REMAINDER),
    Definition::new(
        "^",
        &[
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, float::power),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|_| Ok(NumericPrecision::new(38, 16).sql_type())),
                decimal::power,
            ),
        ],
    ),
    Definition::new("power", POWER),
    Definition::new("pow", POWER),
    Definition::new(
        "negate",
        &[
            Overload::rows(&[T::Int4], INT4, integer::negate_int4),
            Overload::rows(&[T::Int2], INT2, integer::negate_int2),
            Overload::rows(&[T::Int8], INT8, integer::negate_int8),
            Overload::rows(&[T::Numeric], ResultType::SameAs(0), decimal::negate),
            Overload::rewrite(&[T::Float8], FLOAT8, negative),
            Overload::rewrite(&[T::Float4], FLOAT4, negative),
            Overload::rows(&[T::Interval], INTERVAL, datetime::negate),
        ],
    ),
    Definition::new(
        "&",
        &[
            Overload::rewrite(&[T::Int4, T::Int4], INT4, |args| binary(Operator::BitwiseAnd, args)),
            Overload::rewrite(&[T::Int2, T::Int2], INT2, |args| binary(Operator::BitwiseAnd, args)),
            Overload::rewrite(&[T::Int8, T::Int8], INT8, |args| binary(Operator::BitwiseAnd, args)),
        ],
    ),
    Definition::new(
        "|",
        &[
            Overload::rewrite(&[T::Int4, T::Int4], INT4, |args| binary(Operator::BitwiseOr, args)),
            Overload::rewrite(&[T::Int2, T::Int2], INT2, |args| binary(Operator::BitwiseOr, args)),
            Overload::rewrite(&[T::Int8, T::Int8], INT8, |args| binary(Operator::BitwiseOr, args)),
        ],
    ),
    Definition::new(
        "#",
        &[
            Overload::rewrite(&[T::Int4, T::Int4], INT4, |args| binary(Operator::BitwiseXor, args)),
            Overload::rewrite(&[T::Int2, T::Int2], INT2, |args| binary(Operator::BitwiseXor, args)),
            Overload::rewrite(&[T::Int8, T::Int8], INT8, |args| binary(Operator::BitwiseXor, args)),
        ],
    ),
    Definition::new(
        "<<",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, integer::shift_left_int4),
            Overload::rows(&[T::Int8, T::Int4], INT8, integer::shift_left_int8),
        ],
    ),
    Definition::new(
        ">>",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, integer::shift_right_int4),
            Overload::rows(&[T::Int8, T::Int4], INT8, integer::shift_right_int8),
        ],
    ),
    Definition::new(
        "bitnot",
        &[Overload::rows(&[T::Int4], INT4, integer::not_int4), Overload::rows(&[T::Int8], INT8, integer::not_int8)],
    ),
    Definition::new(
        "||",
        &[
            Overload::rewrite(&[T::Text, T::Text], TEXT, |args| binary(Operator::StringConcat, args)),
            Overload::rows(&[T::Jsonb, T::Jsonb], ResultType::fixed(SqlType::Jsonb), json::concatenate),
            Overload::rows(&[T::Bytea, T::Bytea], ResultType::fixed(SqlType::Bytea), text::concatenate_bytes),
            Overload::builtin(&[T::AnyArray, T::AnyArray], ResultType::SameAs(0), array::concat),
            Overload::builtin(&[T::AnyArray, T::Any], ResultType::SameAs(0), array::append),
            Overload::builtin(&[T::Any, T::AnyArray], ResultType::SameAs(1), array::prepend),
            Overload::rows(&[T::Text, T::Any], TEXT, text::concatenate_any),
            Overload::rows(&[T::Any, T::Text], TEXT, text::concatenate_any),
        ],
    ),
];

const REMAINDER: &[Overload] = &[
    Overload::rows(&[T::Int4, T::Int4], INT4, integer::remainder_int4),
    Overload::rows(&[T::Int2, T::Int2], INT2, integer::remainder_int2),
    Overload::rows(&[T::Int8, T::Int8], INT8, integer::remainder_int8),
    Overload::rows(
        &[T::Numeric, T::Numeric],
        ResultType::Computed(|a| Ok(digits(a, 0).remainder_result(digits(a, 1)).sql_type())),
        decimal::remainder,
    ),
];

const POWER: &[Overload] = &[
    Overload::rows(&[T::Float8, T::Float8], FLOAT8, float::power),
    Overload::rows(
        &[T::Numeric, T::Numeric],
        ResultType::Computed(|_| Ok(NumericPrecision::new(38, 16).sql_type())),
        decimal::power,
    ),
];

fn digits(arguments: &[SqlType], index: usize) -> NumericPrecision {
    NumericPrecision::from_sql_type(&arguments[index]).expect("argument of a numeric overload is not an exact number")
}

fn negative(mut args: Vec<Expr>) -> Expr {
    Expr::Negative(Box::new(args.remove(0)))
}

fn binary(operator: Operator, mut args: Vec<Expr>) -> Expr {
    let right = args.remove(1);
    Expr::BinaryExpr(BinaryExpr::new(Box::new(args.remove(0)), operator, Box::new(right)))
}
