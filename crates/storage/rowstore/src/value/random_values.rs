//! Random values of every type, for property tests.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a generator")]

use proptest::prelude::*;
use types::SqlType;
use types::sample_values::Sample;

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
        SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => int(0, u32::MAX.into()),
        SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => unreachable!("elements were generated above"),
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Unknown => "[\u{0}\u{1}ab \u{e9}\u{1f600}]{0,5}|.{0,40}".prop_map(Sample::Text).boxed(),
    }
}
