use std::sync::Arc;

use arrow::array::{
    BooleanArray, Date32Array, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Int16Array,
    IntervalMonthDayNanoArray, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::datatypes::{IntervalMonthDayNano, UInt8Type};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use types::SqlType;
use types::sample_values::{all_types, samples};

use super::*;
use crate::ColumnBuilder;
use crate::sample_values::{all_samples, sample_column, sample_value};
use crate::value::random_values::values_of;

#[test]
fn every_type_is_built_exactly_and_read_back() {
    let mut runner = TestRunner::deterministic();
    for sql_type in all_types() {
        for length in [0, 1, 40] {
            let samples =
                proptest::collection::vec(values_of(&sql_type), length).new_tree(&mut runner).unwrap().current();
            let array = sample_column(&sql_type, &samples);
            assert_eq!(array.data_type(), &sql_type.arrow_type(), "{sql_type}");
            assert_eq!(array.len(), length);
            let values = ColumnValues::new(array.as_ref()).unwrap();
            for (row, sample) in samples.iter().enumerate() {
                assert_eq!(values.get(row), sample_value(sample), "{sql_type}");
            }
        }
    }
}

#[test]
fn all_samples_are_read_back() {
    for sql_type in all_types() {
        let array = all_samples(&sql_type);
        assert_eq!(array.data_type(), &sql_type.arrow_type(), "{sql_type}");
        let values = ColumnValues::new(array.as_ref()).unwrap();
        for (row, sample) in samples(&sql_type).iter().enumerate() {
            assert_eq!(values.get(row), sample_value(sample), "{sql_type}");
        }
    }
}

#[test]
fn values_mean_what_arrow_says() {
    let value = |array: ArrayRef| format!("{:?}", Value::from_array(array.as_ref(), 1).unwrap());
    assert_eq!(value(Arc::new(BooleanArray::from(vec![false, true]))), "Bool(true)");
    assert_eq!(value(Arc::new(Int16Array::from(vec![None, Some(-7)]))), "Int(-7)");
    assert_eq!(value(Arc::new(Int16Array::from(vec![Some(1), None]))), "Null");
    assert_eq!(value(Arc::new(Date32Array::from(vec![0, 19_000]))), "Int(19000)");
    assert_eq!(value(Arc::new(UInt32Array::from(vec![0, u32::MAX]))), "Int(4294967295)");
    assert_eq!(value(Arc::new(TimestampMicrosecondArray::from(vec![0, 5]).with_timezone("UTC"))), "Int(5)");
    assert_eq!(value(Arc::new(Decimal128Array::from(vec![0, 1234]))), "Decimal(1234)");
    assert_eq!(
        value(Arc::new(StringViewArray::from(vec!["", "long enough for a buffer"]))),
        "Text(\"long enough for a buffer\")"
    );
    assert_eq!(
        value(Arc::new(FixedSizeBinaryArray::try_from_iter([[0_u8; 2], [1, 2]].iter()).unwrap())),
        "Bytes([1, 2])"
    );
    let interval =
        IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::ZERO, IntervalMonthDayNano::new(1, 2, 3)]);
    assert_eq!(value(Arc::new(interval)), "Interval { months: 1, days: 2, nanos: 3 }");
}

#[test]
fn slices_are_read_from_their_start() {
    let mut builder = ColumnBuilder::new(&SqlType::Array(Box::new(SqlType::Int4)), 0).unwrap();
    for number in 0..3 {
        let items = [Value::Int(number), Value::Null, Value::Int(number * 10)];
        builder.append(Value::List(List::from_values(&items))).unwrap();
    }
    let array = builder.finish().slice(1, 2);
    let Value::List(list) = Value::from_array(array.as_ref(), 1).unwrap() else { panic!("a list") };
    assert!(list.iter().eq([Value::Int(2), Value::Null, Value::Int(20)]));
}

#[test]
fn types_that_sql_does_not_have_are_refused() {
    let array: DictionaryArray<UInt8Type> = vec!["a"].into_iter().collect();
    assert!(matches!(ColumnValues::new(&array), Err(Error::UnsupportedType(_))));
    assert!(matches!(ColumnValues::new(&StringArray::from(vec!["a"])), Err(Error::UnsupportedType(_))));
}

#[test]
fn values_of_another_type_are_refused() {
    for (sql_type, value) in [
        (SqlType::Bool, Value::Int(1)),
        (SqlType::Int2, Value::Int(40_000)),
        (SqlType::Oid, Value::Int(-1)),
        (SqlType::Date, Value::Text("x")),
        (SqlType::Float8, Value::Float4(1.0)),
        (SqlType::Uuid, Value::Bytes(&[1, 2])),
        (SqlType::Array(Box::new(SqlType::Int4)), Value::List(List::from_values(&[Value::Bool(true)]))),
    ] {
        let mut builder = ColumnBuilder::new(&sql_type, 1).unwrap();
        assert!(matches!(builder.append(value), Err(Error::TypeMismatch { .. })), "{sql_type}");
    }
}
