//! Tests of buckets. The hash is part of the storage format, so its results must never change.

use std::sync::Arc;

use arrow::array::{
    BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};

use rowstore::sample_values::all_samples;
use types::sample_values::all_types;

use super::*;

fn keys(types: &[SqlType]) -> BucketKeys {
    let columns = types.iter().zip(1..).map(|(sql_type, id)| (ColumnId(id), sql_type));
    BucketKeys::new(columns).expect("all of these types have a hash")
}

fn buckets(sql_type: SqlType, values: ArrayRef) -> Vec<u8> {
    keys(&[sql_type]).buckets(&[values]).expect("the values are of the type")
}

fn numeric(digits: Vec<i128>, scale: u8) -> Vec<u8> {
    let values = Decimal128Array::from(digits).with_precision_and_scale(30, scale.cast_signed()).expect("they fit");
    buckets(SqlType::Numeric { precision: 30, scale }, Arc::new(values))
}

#[test]
fn the_buckets_of_values_are_as_ever() {
    let ints = vec![Some(0), Some(1), Some(-1), Some(42), Some(i64::MAX), None];
    assert_eq!(buckets(SqlType::Int8, Arc::new(Int64Array::from(ints))), GOLDEN_INTS);
    let texts = vec![Some(""), Some("a"), Some("Straße"), Some("a longer text than fits a view of twelve bytes"), None];
    assert_eq!(buckets(SqlType::Text, Arc::new(StringViewArray::from(texts))), GOLDEN_TEXTS);
    assert_eq!(numeric(vec![0, 15, -15, 1 << 100], 1), GOLDEN_NUMERICS);
    let floats = Float64Array::from(vec![0.0, 1.5, f64::NAN, f64::NEG_INFINITY]);
    assert_eq!(buckets(SqlType::Float8, Arc::new(floats)), GOLDEN_FLOATS);
    assert_eq!(buckets(SqlType::Date, Arc::new(Date32Array::from(vec![0, 20_000, -1]))), GOLDEN_DATES);
    assert_eq!(buckets(SqlType::Bool, Arc::new(BooleanArray::from(vec![false, true]))), GOLDEN_BOOLS);
    let moments = TimestampMicrosecondArray::from(vec![0, 1_700_000_000_000_000]);
    assert_eq!(buckets(SqlType::Timestamp, Arc::new(moments.clone())), GOLDEN_MOMENTS);
    assert_eq!(buckets(SqlType::TimestampTz, Arc::new(moments.with_timezone("UTC"))), GOLDEN_MOMENTS);
    let times = Time64MicrosecondArray::from(vec![0, 86_399_999_999]);
    assert_eq!(buckets(SqlType::Time, Arc::new(times)), GOLDEN_TIMES);
    let bytes = BinaryArray::from(vec![&b""[..], &[0, 255]]);
    assert_eq!(buckets(SqlType::Bytea, Arc::new(bytes)), GOLDEN_BYTES);
    let uuid = FixedSizeBinaryArray::try_from_iter([[7_u8; 16], [8; 16]].into_iter()).expect("16 bytes each");
    assert_eq!(buckets(SqlType::Uuid, Arc::new(uuid)), GOLDEN_UUIDS);
    let both: [ArrayRef; 2] =
        [Arc::new(Int32Array::from(vec![1, 2, 1])), Arc::new(StringViewArray::from(vec!["x", "x", "y"]))];
    let two = keys(&[SqlType::Int4, SqlType::Text]);
    assert_eq!(two.buckets(&both).expect("the values are of the types"), GOLDEN_PAIRS);
    assert_eq!((keys(&[SqlType::Int8]).scheme(), two.scheme()), GOLDEN_SCHEMES);
}

/// Computed by an independent implementation of the description of the hash.
const GOLDEN_INTS: [u8; 6] = [41, 23, 23, 21, 26, 56];
const GOLDEN_TEXTS: [u8; 5] = [22, 54, 62, 24, 56];
const GOLDEN_NUMERICS: [u8; 4] = [8, 58, 8, 10];
const GOLDEN_FLOATS: [u8; 4] = [41, 26, 20, 57];
const GOLDEN_DATES: [u8; 3] = [41, 50, 23];
const GOLDEN_BOOLS: [u8; 2] = [41, 23];
const GOLDEN_MOMENTS: [u8; 2] = [41, 31];
const GOLDEN_TIMES: [u8; 2] = [41, 60];
const GOLDEN_BYTES: [u8; 2] = [22, 47];
const GOLDEN_UUIDS: [u8; 2] = [31, 28];
const GOLDEN_PAIRS: [u8; 3] = [27, 62, 47];
const GOLDEN_SCHEMES: (u64, u64) = (13_682_577_134_283_606_074, 7_106_920_675_544_259_623);

/// Conformance of distribution keys: the samples of a type have buckets, or its columns are refused as keys.
#[test]
fn all_samples_have_buckets_or_are_refused() {
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        match BucketKeys::new([(ColumnId(1), &sql_type)]) {
            Some(keys) => {
                let buckets = keys.buckets(std::slice::from_ref(&column)).expect("the values are of the type");
                assert_eq!(buckets.len(), column.len(), "{sql_type}");
                assert!(is_hashable(&sql_type) && is_hashable_arrow(column.data_type()), "{sql_type}");
            }
            None => assert!(!is_hashable(&sql_type), "{sql_type}"),
        }
    }
}

#[test]
fn equal_values_have_one_bucket() {
    let wide = buckets(SqlType::Int8, Arc::new(Int64Array::from_iter_values(-300..300)));
    assert_eq!(buckets(SqlType::Int4, Arc::new(Int32Array::from_iter_values(-300..300))), wide);
    assert_eq!(buckets(SqlType::Int2, Arc::new(Int16Array::from_iter_values(-300..300))), wide);
    assert_eq!(keys(&[SqlType::Int2]).scheme(), keys(&[SqlType::Int8]).scheme());
    let padded = StringViewArray::from(vec!["ab", "ab  ", "ab ", " ab"]);
    let padded = buckets(SqlType::Char(Some(4)), Arc::new(padded));
    assert!(padded[0] == padded[1] && padded[0] == padded[2] && padded[0] != padded[3]);
    for (digits, scale) in [(15, 1), (-15, 1), (7, 0), (0, 0), (100, 0)] {
        let more: Vec<u8> =
            (scale..8).flat_map(|to| numeric(vec![digits * 10_i128.pow(u32::from(to - scale))], to)).collect();
        assert!(more.iter().all(|bucket| *bucket == more[0]), "{digits} of scale {scale}: {more:?}");
    }
    let zeros = buckets(SqlType::Float8, Arc::new(Float64Array::from(vec![0.0, -0.0])));
    assert_eq!(zeros[0], zeros[1]);
    let halves = buckets(SqlType::Float4, Arc::new(Float32Array::from(vec![0.5, -2.25])));
    assert_eq!(halves, buckets(SqlType::Float8, Arc::new(Float64Array::from(vec![0.5, -2.25]))));
}

#[test]
fn buckets_are_about_alike() {
    let counts = |buckets: Vec<u8>| {
        let mut counts = [0_u32; BUCKET_COUNT];
        buckets.into_iter().for_each(|bucket| counts[usize::from(bucket)] += 1);
        counts
    };
    let texts: Vec<String> = (0..64_000).map(|number| format!("key {number}")).collect();
    let all = [
        counts(buckets(SqlType::Int8, Arc::new(Int64Array::from_iter_values(0..64_000)))),
        counts(buckets(SqlType::Int8, Arc::new(Int64Array::from_iter_values((0..64_000).map(|key| key << 20))))),
        counts(buckets(SqlType::Text, Arc::new(StringViewArray::from_iter_values(texts)))),
        counts(numeric((0..64_000).collect(), 2)),
    ];
    for counts in all {
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}

#[test]
fn what_has_no_hash_has_no_buckets() {
    for sql_type in [SqlType::Json, SqlType::Jsonb, SqlType::Interval, SqlType::Array(Box::new(SqlType::Int4))] {
        assert!(!is_hashable(&sql_type));
        assert_eq!(BucketKeys::new([(ColumnId(1), &SqlType::Int4), (ColumnId(2), &sql_type)]), None);
    }
    assert_eq!(BucketKeys::new([]), None);
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["1"]));
    assert!(keys(&[SqlType::Int4]).buckets(&[text]).is_err());
}

#[test]
fn schemes_differ_in_columns_and_in_how_these_are_hashed() {
    let of = |columns: &[(i32, SqlType)]| {
        let keys = BucketKeys::new(columns.iter().map(|(id, sql_type)| (ColumnId(*id), sql_type)));
        keys.expect("all of these types have a hash").scheme()
    };
    let one = of(&[(1, SqlType::Int4)]);
    assert_eq!(one, of(&[(1, SqlType::Int8)]));
    let numeric = SqlType::Numeric { precision: 10, scale: 0 };
    let others = [vec![(2, SqlType::Int4)], vec![(1, numeric)], vec![(1, SqlType::Int4), (2, SqlType::Int4)]];
    assert!(others.iter().all(|columns| of(columns) != one));
    assert_ne!(of(&[(1, SqlType::Int4), (2, SqlType::Int4)]), of(&[(2, SqlType::Int4), (1, SqlType::Int4)]));
}

#[test]
fn rows_of_buckets_are_found() {
    let keys = keys(&[SqlType::Int4]);
    let mut runs = BucketRunsBuilder::default();
    runs.add(&[3, 3, 3, 7]);
    runs.add(&[7, 7, 9, 3, 3]);
    let buckets = runs.finish(&keys).expect("they lie in a few runs");
    assert!(buckets.is_valid_for(9) && !buckets.is_valid_for(8));
    assert_eq!(buckets.rows(|bucket| bucket == 3), [0..3, 7..9]);
    let one = |rows: Vec<std::ops::Range<u64>>| <[_; 1]>::try_from(rows).expect("neighbours are together");
    assert_eq!(one(buckets.rows(|bucket| bucket != 3))[0], 3..7);
    assert_eq!(one(buckets.rows(|_| true))[0], 0..9);
    assert!(buckets.rows(|bucket| bucket == 5).is_empty());
    let mut runs = BucketRunsBuilder::default();
    (0..=RUNS).for_each(|row| runs.add(&[u8::from(row % 2 == 0)]));
    assert_eq!(runs.finish(&keys), None);
}

/// More runs than are worth storing.
const RUNS: usize = 1_000;
