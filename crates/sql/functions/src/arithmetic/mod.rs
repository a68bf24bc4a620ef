//! The operators `+ - * / % ^ & | # << >> ||` and unary minus.
//!
//! - `elementwise.rs`: applies an operation row by row,
//! - `integer.rs`, `decimal.rs`, `float.rs`, `datetime.rs`: bodies over arrays, by type,
//! - `single_value.rs`: operators on single values.

mod datetime;
mod decimal;
mod elementwise;
mod float;
mod integer;
mod single_value;

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use types::SqlType;
use types::numeric::NumericPrecision;

pub(crate) use self::datetime::{interval_from_arrow, interval_to_arrow};
pub(crate) use self::decimal::{divide_scaled, overflow};
pub(crate) use self::float::{overflow as float_overflow, sum as float_sum};
pub(super) use self::single_value::Arithmetic;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};
use super::fallibility;
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
        "add",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Overflow, integer::add_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, F::Overflow, integer::add_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, F::Overflow, integer::add_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).addition_result(digits(a, 1)).sql_type())),
                F::Computed(fallibility::decimal_sum),
                decimal::add,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, F::Overflow, float::add8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, F::Overflow, float::add4),
            Overload::rows(&[T::Date, T::Int4], DATE, F::Overflow, datetime::date_plus_days),
            Overload::rows(&[T::Int4, T::Date], DATE, F::Overflow, datetime::days_plus_date),
            Overload::rows(&[T::Timestamp, T::Interval], TIMESTAMP, F::Overflow, datetime::timestamp_plus),
            Overload::rows(&[T::Interval, T::Timestamp], TIMESTAMP, F::Overflow, datetime::plus_timestamp),
            Overload::rows(&[T::TimestampTz, T::Interval], TIMESTAMPTZ, F::Overflow, datetime::timestamptz_plus),
            Overload::rows(&[T::Interval, T::TimestampTz], TIMESTAMPTZ, F::Overflow, datetime::plus_timestamptz),
            Overload::rows(&[T::Date, T::Interval], TIMESTAMP, F::Overflow, datetime::date_plus),
            Overload::rows(&[T::Interval, T::Date], TIMESTAMP, F::Overflow, datetime::plus_date),
            Overload::rows(&[T::Date, T::Time], TIMESTAMP, F::Overflow, datetime::date_plus_time),
            Overload::rows(&[T::Time, T::Date], TIMESTAMP, F::Overflow, datetime::time_plus_date),
            Overload::rows(&[T::Time, T::Interval], TIME, F::Nothing, datetime::time_plus),
            Overload::rows(&[T::Interval, T::Time], TIME, F::Nothing, datetime::plus_time),
            Overload::rows(&[T::Interval, T::Interval], INTERVAL, F::Overflow, datetime::interval_plus),
        ],
    ),
    Definition::new(
        "-",
        "subtract",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Overflow, integer::subtract_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, F::Overflow, integer::subtract_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, F::Overflow, integer::subtract_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).addition_result(digits(a, 1)).sql_type())),
                F::Computed(fallibility::decimal_sum),
                decimal::subtract,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, F::Overflow, float::subtract8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, F::Overflow, float::subtract4),
            Overload::rows(&[T::Date, T::Date], INT4, F::Nothing, datetime::date_minus_date),
            Overload::rows(&[T::Date, T::Int4], DATE, F::Overflow, datetime::date_minus_days),
            Overload::rows(&[T::Timestamp, T::Timestamp], INTERVAL, F::Overflow, datetime::timestamp_minus_timestamp),
            Overload::rows(
                &[T::TimestampTz, T::TimestampTz],
                INTERVAL,
                F::Overflow,
                datetime::timestamp_minus_timestamp,
            ),
            Overload::rows(&[T::Timestamp, T::Interval], TIMESTAMP, F::Overflow, datetime::timestamp_minus),
            Overload::rows(&[T::TimestampTz, T::Interval], TIMESTAMPTZ, F::Overflow, datetime::timestamptz_minus),
            Overload::rows(&[T::Date, T::Interval], TIMESTAMP, F::Overflow, datetime::date_minus),
            Overload::rows(&[T::Time, T::Time], INTERVAL, F::Nothing, datetime::time_minus_time),
            Overload::rows(&[T::Time, T::Interval], TIME, F::Nothing, datetime::time_minus),
            Overload::rows(&[T::Interval, T::Interval], INTERVAL, F::Overflow, datetime::interval_minus),
            Overload::rows(&[T::Jsonb, T::Text], ResultType::fixed(SqlType::Jsonb), F::SomeValues, json::remove_key),
            Overload::rows(&[T::Jsonb, T::Int4], ResultType::fixed(SqlType::Jsonb), F::SomeValues, json::remove_index),
        ],
    ),
    Definition::new(
        "*",
        "multiply",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Overflow, integer::multiply_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, F::Overflow, integer::multiply_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, F::Overflow, integer::multiply_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).multiplication_result(digits(a, 1)).sql_type())),
                F::Computed(fallibility::decimal_product),
                decimal::multiply,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, F::Overflow, float::multiply8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, F::Overflow, float::multiply4),
            Overload::rows(&[T::Interval, T::Float8], INTERVAL, F::Overflow, datetime::interval_times),
            Overload::rows(&[T::Float8, T::Interval], INTERVAL, F::Overflow, datetime::times_interval),
        ],
    ),
    Definition::new(
        "/",
        "divide",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Computed(fallibility::integer_quotient), integer::divide_int4),
            Overload::rows(&[T::Int2, T::Int2], INT2, F::Computed(fallibility::integer_quotient), integer::divide_int2),
            Overload::rows(&[T::Int8, T::Int8], INT8, F::Computed(fallibility::integer_quotient), integer::divide_int8),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|a| Ok(digits(a, 0).division_result(digits(a, 1)).sql_type())),
                F::Computed(fallibility::decimal_quotient),
                decimal::divide,
            ),
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, F::Computed(fallibility::float_quotient), float::divide8),
            Overload::rows(&[T::Float4, T::Float4], FLOAT4, F::Computed(fallibility::float_quotient), float::divide4),
            Overload::rows(
                &[T::Interval, T::Float8],
                INTERVAL,
                F::Computed(fallibility::float_quotient),
                datetime::interval_divided,
            ),
        ],
    ),
    Definition::new("%", "modulus", REMAINDER),
    Definition::new("mod", "modulus", REMAINDER).in_catalog(&[
        catalog_entry(940, "int2,int2", "int2"),
        catalog_entry(941, "int4,int4", "int4"),
        catalog_entry(947, "int8,int8", "int8"),
        catalog_entry(1728, "numeric,numeric", "numeric"),
    ]),
    Definition::new(
        "^",
        "exponentiation",
        &[
            Overload::rows(&[T::Float8, T::Float8], FLOAT8, F::SomeValues, float::power),
            Overload::rows(
                &[T::Numeric, T::Numeric],
                ResultType::Computed(|_| Ok(NumericPrecision::new(38, 16).sql_type())),
                F::SomeValues,
                decimal::power,
            ),
        ],
    ),
    Definition::new("power", "exponentiation", POWER).in_catalog(&[
        catalog_entry(1368, "float8,float8", "float8"),
        catalog_entry(2169, "numeric,numeric", "numeric"),
    ]),
    Definition::new("pow", "exponentiation", POWER).in_catalog(&[
        catalog_entry(1346, "float8,float8", "float8"),
        catalog_entry(1738, "numeric,numeric", "numeric"),
    ]),
    Definition::new(
        "negate",
        "negate; the operator -x",
        &[
            Overload::rows(&[T::Int4], INT4, F::Overflow, integer::negate_int4),
            Overload::rows(&[T::Int2], INT2, F::Overflow, integer::negate_int2),
            Overload::rows(&[T::Int8], INT8, F::Overflow, integer::negate_int8),
            Overload::rows(&[T::Numeric], ResultType::SameAs(0), F::Nothing, decimal::negate),
            Overload::rewrite(&[T::Float8], FLOAT8, F::Nothing, negative),
            Overload::rewrite(&[T::Float4], FLOAT4, F::Nothing, negative),
            Overload::rows(&[T::Interval], INTERVAL, F::Overflow, datetime::negate),
        ],
    ),
    Definition::new(
        "&",
        "bitwise and",
        &[
            Overload::rewrite(&[T::Int4, T::Int4], INT4, F::Nothing, |args| binary(Operator::BitwiseAnd, args)),
            Overload::rewrite(&[T::Int2, T::Int2], INT2, F::Nothing, |args| binary(Operator::BitwiseAnd, args)),
            Overload::rewrite(&[T::Int8, T::Int8], INT8, F::Nothing, |args| binary(Operator::BitwiseAnd, args)),
        ],
    ),
    Definition::new(
        "|",
        "bitwise or",
        &[
            Overload::rewrite(&[T::Int4, T::Int4], INT4, F::Nothing, |args| binary(Operator::BitwiseOr, args)),
            Overload::rewrite(&[T::Int2, T::Int2], INT2, F::Nothing, |args| binary(Operator::BitwiseOr, args)),
            Overload::rewrite(&[T::Int8, T::Int8], INT8, F::Nothing, |args| binary(Operator::BitwiseOr, args)),
        ],
    ),
    Definition::new(
        "#",
        "bitwise exclusive or",
        &[
            Overload::rewrite(&[T::Int4, T::Int4], INT4, F::Nothing, |args| binary(Operator::BitwiseXor, args)),
            Overload::rewrite(&[T::Int2, T::Int2], INT2, F::Nothing, |args| binary(Operator::BitwiseXor, args)),
            Overload::rewrite(&[T::Int8, T::Int8], INT8, F::Nothing, |args| binary(Operator::BitwiseXor, args)),
        ],
    ),
    Definition::new(
        "<<",
        "bitwise shift left",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Nothing, integer::shift_left_int4),
            Overload::rows(&[T::Int8, T::Int4], INT8, F::Nothing, integer::shift_left_int8),
        ],
    ),
    Definition::new(
        ">>",
        "bitwise shift right",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Nothing, integer::shift_right_int4),
            Overload::rows(&[T::Int8, T::Int4], INT8, F::Nothing, integer::shift_right_int8),
        ],
    ),
    Definition::new(
        "bitnot",
        "bitwise not; the operator ~x",
        &[
            Overload::rows(&[T::Int4], INT4, F::Nothing, integer::not_int4),
            Overload::rows(&[T::Int8], INT8, F::Nothing, integer::not_int8),
        ],
    ),
    Definition::new(
        "||",
        "concatenate",
        &[
            Overload::rewrite(&[T::Text, T::Text], TEXT, F::Nothing, |args| binary(Operator::StringConcat, args)),
            Overload::rows(&[T::Jsonb, T::Jsonb], ResultType::fixed(SqlType::Jsonb), F::SomeValues, json::concatenate),
            Overload::rows(
                &[T::Bytea, T::Bytea],
                ResultType::fixed(SqlType::Bytea),
                F::Nothing,
                text::concatenate_bytes,
            ),
            Overload::builtin(&[T::AnyArray, T::AnyArray], ResultType::SameAs(0), F::Nothing, array::concat),
            Overload::builtin(&[T::AnyArray, T::Any], ResultType::SameAs(0), F::Nothing, array::append),
            Overload::builtin(&[T::Any, T::AnyArray], ResultType::SameAs(1), F::Nothing, array::prepend),
            Overload::rows(&[T::Text, T::Any], TEXT, F::Nothing, text::concatenate_any),
            Overload::rows(&[T::Any, T::Text], TEXT, F::Nothing, text::concatenate_any),
        ],
    ),
];

const REMAINDER: &[Overload] = &[
    Overload::rows(&[T::Int4, T::Int4], INT4, F::Computed(fallibility::remainder), integer::remainder_int4),
    Overload::rows(&[T::Int2, T::Int2], INT2, F::Computed(fallibility::remainder), integer::remainder_int2),
    Overload::rows(&[T::Int8, T::Int8], INT8, F::Computed(fallibility::remainder), integer::remainder_int8),
    Overload::rows(
        &[T::Numeric, T::Numeric],
        ResultType::Computed(|a| Ok(digits(a, 0).remainder_result(digits(a, 1)).sql_type())),
        F::Computed(fallibility::remainder),
        decimal::remainder,
    ),
];

const POWER: &[Overload] = &[
    Overload::rows(&[T::Float8, T::Float8], FLOAT8, F::SomeValues, float::power),
    Overload::rows(
        &[T::Numeric, T::Numeric],
        ResultType::Computed(|_| Ok(NumericPrecision::new(38, 16).sql_type())),
        F::SomeValues,
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
