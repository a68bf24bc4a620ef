use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int32Array, RecordBatch, StringViewArray, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};
use types::{ColumnId, SqlType};

use super::*;
use crate::{ColumnStats, Datum};

/// Statistics must not depend on the sizes of the arrays in which values arrive.
#[track_caller]
fn stats(values: ArrayRef, sql_type: &SqlType) -> ColumnStats {
    let whole = stats_in(&values, sql_type, values.len().max(1));
    for size in 1..values.len() {
        assert_eq!(stats_in(&values, sql_type, size), whole, "in arrays of {size}");
    }
    whole
}

fn stats_in(values: &ArrayRef, sql_type: &SqlType, size: usize) -> ColumnStats {
    let mut tally = ColumnStatsCollector::new(ColumnId(1), sql_type.clone());
    let mut start = 0;
    while start < values.len() {
        let length = size.min(values.len() - start);
        tally.add(&values.slice(start, length)).unwrap();
        start += length;
    }
    tally.finish(7, Vec::new())
}

fn ints(values: &[Option<i32>]) -> ColumnStats {
    stats(Arc::new(Int32Array::from(values.to_vec())), &SqlType::Int4)
}

#[test]
fn a_key_in_order_is_known_to_be_unique() {
    let found = ints(&[Some(-3), Some(1), Some(2), Some(9)]);
    assert!(found.ascending && found.strictly_ascending && found.bounds_exact);
    assert_eq!((found.min, found.max), (Some(Datum::Int(-3)), Some(Datum::Int(9))));
    assert_eq!((found.nulls, found.distinct.estimate(), found.average_run, found.bytes), (0, 4, 1.0, 7));
}

#[test]
fn repetition_ends_strictness_and_disorder_ends_order() {
    let repeated = ints(&[Some(1), Some(1), Some(1), Some(2)]);
    assert!(repeated.ascending && !repeated.strictly_ascending);
    assert_eq!((repeated.average_run, repeated.distinct.estimate()), (2.0, 2));
    let back = ints(&[Some(1), Some(3), Some(2)]);
    assert!(!back.ascending && !back.strictly_ascending);
    assert_eq!(back.max, Some(Datum::Int(3)));
}

#[test]
fn nulls_are_counted_make_one_run_and_end_order() {
    let found = ints(&[None, None, Some(4), Some(4), None]);
    assert!(!found.ascending && !found.strictly_ascending);
    assert_eq!((found.nulls, found.distinct.estimate()), (3, 1));
    assert!((found.average_run - 5.0 / 3.0).abs() < 1e-6);
    assert_eq!((found.min, found.max), (Some(Datum::Int(4)), Some(Datum::Int(4))));
    let only = ints(&[None, None]);
    assert_eq!((only.nulls, only.min, only.max, only.distinct.estimate()), (2, None, None, 0));
}

#[test]
fn floats_are_ordered_as_in_sql() {
    let values = vec![-1.0, -0.0, 0.0, 5.0, f64::NAN];
    let found = stats(Arc::new(Float64Array::from(values)), &SqlType::Float8);
    assert!(found.ascending && !found.strictly_ascending, "-0 equals 0, NaN is the greatest");
    assert_eq!(found.distinct.estimate(), 4);
    assert_eq!((found.min, found.max), (Some(Datum::Float(-1.0)), Some(Datum::Float(f64::NAN))));
}

#[test]
fn long_text_has_short_bounds() {
    let long = "x".repeat(100);
    let values = StringViewArray::from(vec!["a", &long]);
    let found = stats(Arc::new(values), &SqlType::Text);
    assert!(found.ascending && found.strictly_ascending && !found.bounds_exact);
    assert_eq!(found.min, Some(Datum::Text("a".to_owned())));
    let Some(Datum::Text(max)) = found.max else { panic!("a bound") };
    assert!(max.len() <= 64 && long < max);
}

#[test]
fn json_is_told_apart_but_not_ordered() {
    let values = StringViewArray::from(vec![Some("{}"), Some("{}"), Some("[]"), None]);
    let found = stats(Arc::new(values), &SqlType::Json);
    assert!(!found.ascending && found.min.is_none() && found.max.is_none());
    assert_eq!((found.nulls, found.distinct.estimate()), (1, 2));
    assert!((found.average_run - 4.0 / 3.0).abs() < 1e-6);
}

#[test]
fn a_decimal_and_an_equal_one_hash_alike() {
    let decimal = Decimal128Array::from(vec![Some(5), Some(-5), Some(5), Some(i128::MAX)]);
    let decimal = decimal.with_precision_and_scale(38, 2).unwrap();
    let found = stats(Arc::new(decimal), &SqlType::Numeric { precision: 38, scale: 2 });
    assert_eq!(found.distinct.estimate(), 3);
    assert_eq!(found.max, Some(Datum::Decimal(i128::MAX)));
}

#[test]
fn frequent_values_are_found_with_their_share() {
    let values: Vec<i32> = (0..1_000).map(|row| if row % 2 == 0 { -7 } else { row }).collect();
    let sample: ArrayRef = Arc::new(Int32Array::from(values));
    assert_eq!(heavy_hitters(&sample, &SqlType::Int4, 10_000).unwrap(), [(Datum::Int(-7), 5_000)]);
    let unique: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1_000));
    assert_eq!(heavy_hitters(&unique, &SqlType::Int4, 1_000).unwrap(), []);
}

fn numbers(range: std::ops::Range<u32>) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::UInt32, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(UInt32Array::from_iter_values(range))]).unwrap()
}

fn drawn(rows: u32, capacity: usize, size: u32) -> Vec<u32> {
    let mut sample = RowSample::new(numbers(0..0).schema(), capacity);
    for start in (0..rows).step_by(size as usize) {
        sample.add(&numbers(start..rows.min(start + size))).unwrap();
    }
    assert_eq!(sample.seen(), u64::from(rows));
    let batch = sample.finish().unwrap();
    let values = batch.column(0).as_any().downcast_ref::<UInt32Array>().unwrap();
    values.values().to_vec()
}

#[test]
fn a_sample_has_so_many_rows_whatever_the_batches() {
    assert_eq!(drawn(10, 16, 3), (0..10).collect::<Vec<_>>(), "all of few");
    assert!(drawn(0, 16, 3).is_empty());
    assert!(drawn(1_000, 0, 10).is_empty());
    let many = drawn(100_000, 64, 1_000);
    assert_eq!(many.len(), 64);
    assert!(many.is_sorted());
    assert_eq!(drawn(100_000, 64, 7), many);
}

#[test]
fn a_sample_is_spread_over_all_rows() {
    let rows = drawn(100_000, 4_096, 65_536);
    let mean = rows.iter().map(|row| f64::from(*row)).sum::<f64>() / rows.len() as f64;
    assert!((mean - 50_000.0).abs() < 2_000.0, "mean row {mean}");
}
