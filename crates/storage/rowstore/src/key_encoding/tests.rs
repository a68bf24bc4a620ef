use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use types::SqlType;
use types::sample_values::{Sample, all_types, samples};

use super::*;
use crate::sample_values::sample_value;
use crate::value::random_values::values_of;

fn key(samples: &[Sample]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(samples.iter().map(sample_value), &mut out);
    out
}

/// Reference implementation of PostgreSQL's btree order, independent of the encoding.
fn compare(left: &Sample, right: &Sample) -> Ordering {
    match (left, right) {
        (Sample::Null, Sample::Null) => Ordering::Equal,
        (Sample::Null, _) => Ordering::Greater,
        (_, Sample::Null) => Ordering::Less,
        (Sample::Bool(left), Sample::Bool(right)) => left.cmp(right),
        (Sample::Int(left), Sample::Int(right)) => left.cmp(right),
        (Sample::Decimal(left), Sample::Decimal(right)) => left.cmp(right),
        (Sample::Float4(left), Sample::Float4(right)) => compare_floats((*left).into(), (*right).into()),
        (Sample::Float8(left), Sample::Float8(right)) => compare_floats(*left, *right),
        (Sample::Text(left), Sample::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Sample::Bytes(left), Sample::Bytes(right)) => left.cmp(right),
        (Sample::Interval(..), Sample::Interval(..)) => span(left).cmp(&span(right)),
        (Sample::List(left), Sample::List(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| compare(left, right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        _ => panic!("values of two types"),
    }
}

fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn span(interval: &Sample) -> i128 {
    let Sample::Interval(months, days, nanos) = interval else { panic!("an interval") };
    (i128::from(*months) * 30 + i128::from(*days)) * 86_400_000_000_000 + i128::from(*nanos)
}

#[test]
fn keys_order_as_values_do() {
    for sql_type in all_types() {
        let pairs = (values_of(&sql_type), values_of(&sql_type));
        TestRunner::deterministic()
            .run(&pairs, |(left, right)| {
                let keys = key(std::slice::from_ref(&left)).cmp(&key(std::slice::from_ref(&right)));
                prop_assert_eq!(keys, compare(&left, &right), "{}: {:?} {:?}", sql_type, left, right);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn the_keys_of_all_samples_order_as_values_do() {
    for sql_type in all_types() {
        let samples = samples(&sql_type);
        for left in &samples {
            for right in &samples {
                let keys = key(std::slice::from_ref(left)).cmp(&key(std::slice::from_ref(right)));
                assert_eq!(keys, compare(left, right), "{sql_type}: {left:?} {right:?}");
            }
        }
    }
}

#[test]
fn keys_of_several_columns_order_by_the_first_that_differs() {
    let columns = [SqlType::Text, SqlType::Bytea, SqlType::Array(Box::new(SqlType::Text)), SqlType::Float8];
    for first in &columns {
        for second in &columns {
            let row = || (values_of(first), values_of(second));
            TestRunner::deterministic()
                .run(&(row(), row()), |(left, right)| {
                    let keys = key(&[left.0.clone(), left.1.clone()]).cmp(&key(&[right.0.clone(), right.1.clone()]));
                    let expected = compare(&left.0, &right.0).then_with(|| compare(&left.1, &right.1));
                    prop_assert_eq!(keys, expected, "{:?} {:?}", left, right);
                    Ok(())
                })
                .unwrap();
        }
    }
}

#[test]
fn no_key_is_a_prefix_of_another() {
    for sql_type in all_types() {
        let pairs = (values_of(&sql_type), values_of(&sql_type));
        TestRunner::deterministic()
            .run(&pairs, |(left, right)| {
                let (left, right) = (key(&[left]), key(&[right]));
                prop_assert!(left == right || !right.starts_with(&left), "{left:?} {right:?}");
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn numbers_of_different_widths_share_their_keys() {
    assert_eq!(key(&[Sample::Float4(1.5)]), key(&[Sample::Float8(1.5)]));
    assert_eq!(key(&[Sample::Interval(1, 0, 0)]), key(&[Sample::Interval(0, 30, 0)]));
    assert_eq!(key(&[Sample::Float8(-0.0)]), key(&[Sample::Float8(0.0)]));
    assert_eq!(key(&[Sample::Float8(-f64::NAN)]), key(&[Sample::Float8(f64::NAN)]));
}

#[test]
fn the_bytes_stay_what_they_are() {
    let expected = [
        &[1, 0x80, 0, 0, 0, 0, 0, 0, 5][..],
        &[1, b'a', 0, 0xff, b'b', 0, 0],
        &[2],
        &[1, 1],
        &[1, 1, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0],
        &[1, 0x3f, 0xf7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
    ]
    .concat();
    let samples = [
        Sample::Int(5),
        Sample::Text("a\0b".to_owned()),
        Sample::Null,
        Sample::Bool(true),
        Sample::List(vec![Sample::Int(-1), Sample::Null]),
        Sample::Float8(-3.0),
        Sample::Decimal(7),
    ];
    assert_eq!(key(&samples), expected);
}

#[test]
fn a_key_tells_of_its_nulls() {
    assert!(encode_key([Value::Int(1), Value::Null], &mut Vec::new()));
    assert!(!encode_key([Value::Int(1), Value::Text("")], &mut Vec::new()));
}
