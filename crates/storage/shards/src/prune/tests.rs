use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::filter_record_batch;
use proptest::prelude::*;
use types::SqlType;

use super::*;
use crate::reader::tests::{column, read_all, shard};
use crate::writer::tests::bucket;
use crate::{CompareOp, Datum, ShardReader, Test};

#[derive(Debug, Clone)]
struct Row {
    number: Option<i64>,
    float: Option<f64>,
    text: Option<String>,
}

fn row() -> impl Strategy<Value = Row> {
    let float = prop_oneof![Just(f64::NAN), Just(-0.0), (-3_i32..3).prop_map(f64::from)];
    let text = prop_oneof!["[ab]{0,2}", "[xy]{70}"];
    (prop::option::of(-5_i64..5), prop::option::of(float), prop::option::of(text))
        .prop_map(|(number, float, text)| Row { number, float, text })
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let datum = prop_oneof![
        (-6_i64..6).prop_map(|value| (1, Datum::Int(value))),
        prop_oneof![Just(f64::NAN), Just(0.0), (-3_i32..4).prop_map(f64::from)]
            .prop_map(|value| (2, Datum::Float(value))),
        prop_oneof!["[ab]{0,2}", "[xy]{70}"].prop_map(|value| (3, Datum::Text(value))),
    ];
    let op = prop::sample::select(vec![
        CompareOp::Eq,
        CompareOp::NotEq,
        CompareOp::Less,
        CompareOp::LessEq,
        CompareOp::Greater,
        CompareOp::GreaterEq,
    ]);
    (datum, op, 0..4).prop_map(|((id, datum), op, kind)| {
        let test = match kind {
            0 => Test::IsNull,
            1 => Test::Any(vec![Test::IsNull, Test::Compare(op, datum)]),
            _ => Test::Compare(op, datum),
        };
        Predicate { column: ColumnId(id), test }
    })
}

fn passes(test: &Test, value: Option<&Datum>) -> bool {
    match (test, value) {
        (Test::IsNull, value) => value.is_none(),
        (Test::Any(tests), value) => tests.iter().any(|test| passes(test, value)),
        (Test::Compare(op, other), Some(value)) => match op {
            CompareOp::Eq => value == other,
            CompareOp::NotEq => value != other,
            CompareOp::Less => value < other,
            CompareOp::LessEq => value <= other,
            CompareOp::Greater => value > other,
            CompareOp::GreaterEq => value >= other,
        },
        (Test::Compare(..), None) => false,
        (other, _) => unreachable!("{other:?} is not generated"),
    }
}

/// Returns the rows that actually pass.
fn filtered(batch: &RecordBatch, predicates: &[Predicate]) -> RecordBatch {
    let keep: BooleanArray = (0..batch.num_rows())
        .map(|row| {
            let passed = |predicate: &Predicate| {
                let values = batch.column(usize::try_from(predicate.column.0 - 1).unwrap());
                passes(&predicate.test, Datum::from_array(values.as_ref(), row).as_ref())
            };
            Some(predicates.iter().all(passed))
        })
        .collect();
    filter_record_batch(batch, &keep).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_row_that_passes_is_lost(
        mut rows in prop::collection::vec(row(), 1..120),
        predicates in prop::collection::vec(predicate(), 1..3),
        sorted in any::<bool>(),
    ) {
        if sorted {
            rows.sort_by_key(|row| row.number);
        }
        let columns = [column(1, "n", SqlType::Int8), column(2, "f", SqlType::Float8), column(3, "t", SqlType::Text)];
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.number).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.float).collect::<Float64Array>()),
            Arc::new(rows.iter().map(|row| row.text.clone()).collect::<StringViewArray>()),
        ];
        let batch = RecordBatch::try_new(ShardReader::schema(&columns), arrays).unwrap();
        let wanted = filtered(&batch, &predicates);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (may_match, read) = runtime.block_on(async {
            let objects = bucket();
            let meta = shard(&objects, &columns, &batch).await;
            let reader = ShardReader::open(&objects, &meta).await.unwrap();
            let read = read_all(&reader, &columns, &predicates).await.unwrap().0;
            (may_match(&meta, &predicates, &columns), read)
        });
        prop_assert!(may_match || wanted.num_rows() == 0);
        let found = filtered(&read, &predicates);
        prop_assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
    }
}

#[test]
fn rows_in_both_are_the_intersection() {
    assert_eq!(intersection(&[0..10, 20..30], &[5..25, 28..40]), [5..10, 20..25, 28..30]);
    let (whole, middle) = (0..10, 5..15);
    assert_eq!(intersection(&[0..10, 10..20], std::slice::from_ref(&middle)), std::slice::from_ref(&middle));
    assert_eq!(intersection(std::slice::from_ref(&whole), &[]), Vec::<Range<usize>>::new());
}

#[test]
fn shards_older_than_a_column_are_judged_by_its_missing_value() {
    let (known, new) = (column(1, "a", SqlType::Int8), column(2, "b", SqlType::Int8));
    let with_value = ColumnDef { missing: Some("5".to_owned()), ..new.clone() };
    let meta = ShardMeta {
        id: types::ShardId(uuid::Uuid::nil()),
        object: String::new(),
        rows: 3,
        bytes: 0,
        tail_bytes: 0,
        tail_checksum: 0,
        columns: Vec::new(),
        row_groups: Vec::new(),
        row_ids: crate::RowIds::None,
        buckets: None,
    };
    let is = |value| [Predicate { column: ColumnId(2), test: Test::Compare(CompareOp::Eq, Datum::Int(value)) }];
    assert!(may_match(&meta, &is(5), &[known.clone(), with_value.clone()]));
    assert!(!may_match(&meta, &is(6), &[known.clone(), with_value]));
    assert!(!may_match(&meta, &is(5), &[known.clone(), new.clone()]));
    let is_null = [Predicate { column: ColumnId(2), test: Test::IsNull }];
    assert!(may_match(&meta, &is_null, &[known, new]));
}
