//! Random values of every type, for property tests.

use arrow::array::ArrayRef;
use proptest::prelude::*;
use types::SqlType;

use crate::value::List;
use crate::{ColumnBuilder, Value};

/// An owned value.
#[derive(Debug, Clone)]
pub(crate) enum Sample {
    Null,
    Bool(bool),
    Int(i64),
    Decimal(i128),
    Float4(f32),
    Float8(f64),
    Text(String),
    Bytes(Vec<u8>),
    Interval(i32, i32, i64),
    List(Vec<Sample>),
}

impl Sample {
    /// Borrows the value. The elements of a list are leaked, which is acceptable in tests.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Sample::Null => Value::Null,
            Sample::Bool(value) => Value::Bool(*value),
            Sample::Int(value) => Value::Int(*value),
            Sample::Decimal(value) => Value::Decimal(*value),
            Sample::Float4(value) => Value::Float4(*value),
            Sample::Float8(value) => Value::Float8(*value),
            Sample::Text(value) => Value::Text(value),
            Sample::Bytes(value) => Value::Bytes(value),
            Sample::Interval(months, days, nanos) => Value::Interval { months: *months, days: *days, nanos: *nanos },
            Sample::List(items) => {
                Value::List(List::from_values(items.iter().map(Sample::value).collect::<Vec<_>>().leak()))
            }
        }
    }
}

/// Returns all column types and lists of them.
pub(crate) fn all_types() -> Vec<SqlType> {
    let mut all: Vec<SqlType> = SqlType::scalars().collect();
    all.extend(
        SqlType::scalars().filter(|scalar| *scalar != SqlType::Unknown).map(|scalar| SqlType::Array(Box::new(scalar))),
    );
    all
}

/// Generates values of a type, including NULL; equal and close values are likely.
pub(crate) fn values_of(sql_type: &SqlType) -> BoxedStrategy<Sample> {
    prop_oneof![1 => Just(Sample::Null), 6 => non_null_values(sql_type)].boxed()
}

fn non_null_values(sql_type: &SqlType) -> BoxedStrategy<Sample> {
    if let Some(element) = sql_type.element() {
        return proptest::collection::vec(values_of(&element), 0..4).prop_map(Sample::List).boxed();
    }
    let int = |low: i64, high: i64| {
        prop_oneof![low..=high, (-2_i64..3).prop_map(move |small| small.clamp(low, high)), Just(low), Just(high)]
            .prop_map(Sample::Int)
            .boxed()
    };
    match sql_type {
        SqlType::Bool => any::<bool>().prop_map(Sample::Bool).boxed(),
        SqlType::Int2 => int(i16::MIN.into(), i16::MAX.into()),
        SqlType::Int4 | SqlType::Date => int(i32::MIN.into(), i32::MAX.into()),
        SqlType::Int8 | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => int(i64::MIN, i64::MAX),
        SqlType::Numeric { .. } => {
            let limit = 10_i128.pow(38) - 1;
            prop_oneof![-limit..=limit, -300_i128..300, Just(i64::MAX.into()), Just(i128::from(i64::MAX) + 1)]
                .prop_map(Sample::Decimal)
                .boxed()
        }
        SqlType::Float4 => prop_oneof![
            proptest::num::f32::ANY,
            proptest::sample::select(vec![0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.5])
        ]
        .prop_map(Sample::Float4)
        .boxed(),
        SqlType::Float8 => prop_oneof![
            proptest::num::f64::ANY,
            proptest::sample::select(vec![0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5])
        ]
        .prop_map(Sample::Float8)
        .boxed(),
        SqlType::Interval => {
            let near = (-3_i32..3, -100_i32..100, -200_000_000_000_000_i64..200_000_000_000_000);
            let any = (any::<i32>(), any::<i32>(), any::<i64>());
            prop_oneof![near, any]
                .prop_map(|(months, days, nanos)| Sample::Interval(months, days, nanos / 1000 * 1000))
                .boxed()
        }
        SqlType::Bytea => proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(0xff), any::<u8>()], 0..6)
            .prop_map(Sample::Bytes)
            .boxed(),
        SqlType::Uuid => {
            proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 16).prop_map(Sample::Bytes).boxed()
        }
        other if other.is_oid() => int(0, u32::MAX.into()),
        _ => "[\u{0}\u{1}ab \u{e9}\u{1f600}]{0,5}|.{0,40}".prop_map(Sample::Text).boxed(),
    }
}

/// Builds a column of `samples`.
pub(crate) fn column(sql_type: &SqlType, samples: &[Sample]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(sql_type, samples.len()).unwrap();
    for sample in samples {
        builder.append(sample.value()).unwrap();
    }
    builder.finish()
}
