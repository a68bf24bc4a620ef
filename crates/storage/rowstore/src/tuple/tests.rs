use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use types::sample_values::{Sample, all_types};

use super::*;
use crate::sample_values::sample_value;
use crate::value::List;
use crate::value::random_values::values_of;

fn tuple<'a>(values: impl IntoIterator<Item = (i32, Value<'a>)>) -> Tuple {
    Tuple::encode(values.into_iter().map(|(id, value)| (ColumnId(id), value))).unwrap()
}

/// Generates columns of random types whose ids have gaps.
fn rows() -> impl Strategy<Value = Vec<(i32, Sample)>> {
    let value = proptest::sample::select(all_types()).prop_flat_map(|sql_type| values_of(&sql_type));
    proptest::collection::vec((prop_oneof![9 => 1..4_i32, 1 => Just(1000)], value), 0..12).prop_map(|columns| {
        let mut id = 0;
        columns
            .into_iter()
            .map(|(gap, value)| {
                id += gap;
                (id, value)
            })
            .collect()
    })
}

#[test]
fn rows_are_read_back() {
    TestRunner::deterministic()
        .run(&rows(), |columns| {
            let row = tuple(columns.iter().map(|(id, sample)| (*id, sample_value(sample))));
            let row = Tuple::validate(row.into_bytes()).unwrap();
            for (id, sample) in &columns {
                prop_assert_eq!(row.get(ColumnId(*id)), Some(sample_value(sample)));
                prop_assert!(row.get(ColumnId(*id + 5000)).is_none());
            }
            let read: Vec<_> = row.reader().iter().collect();
            let written: Vec<_> = columns.iter().map(|(id, sample)| (ColumnId(*id), sample_value(sample))).collect();
            prop_assert_eq!(read, written);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_column_that_the_row_never_had_differs_from_null() {
    let row = tuple([(1, Value::Int(5)), (3, Value::Null)]);
    assert_eq!(row.get(ColumnId(1)), Some(Value::Int(5)));
    assert_eq!(row.get(ColumnId(2)), None);
    assert_eq!(row.get(ColumnId(3)), Some(Value::Null));
    assert_eq!(row.get(ColumnId(4)), None);
    assert_eq!(row.get(ColumnId(0)), None);
    assert_eq!(row.get(ColumnId(-3)), None);
    assert_eq!(row.reader().find(ColumnId(3), 700), Some(1));
}

#[test]
fn the_bytes_stay_what_they_are() {
    let items = [Value::Int(1), Value::Null, Value::Text("é")];
    let row = tuple([
        (1, Value::Int(-2)),
        (2, Value::Null),
        (3, Value::Text("ab")),
        (4, Value::Bool(true)),
        (5, Value::Decimal(300)),
        (7, Value::Bytes(&[9, 8])),
        (8, Value::Float4(1.0)),
        (9, Value::Float8(-2.0)),
        (10, Value::Interval { months: 1, days: -1, nanos: 2 }),
        (11, Value::List(List::from_values(&items))),
        (12, Value::Decimal(1 << 100)),
    ]);
    let expected = [
        &[1, 11, 0][..],
        &[1, 3, 1, 0, 2, 0, 1, 0, 3, 7, 3, 0, 4, 2, 3, 0, 5, 4, 5, 0, 7, 8, 7, 0, 8, 5, 11, 0, 9, 6, 19, 0],
        &[10, 9, 35, 0, 11, 10, 48, 0, 12, 4, 64, 0],
        &[0xfe],
        b"ab",
        &[0x2c, 0x01],
        &[9, 8],
        &[0, 0, 0x80, 0x3f],
        &[0, 0, 0, 0, 0, 0, 0, 0xc0],
        &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 3, 1, 1, 0, 0, 7, 2, 0xc3, 0xa9],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0],
    ]
    .concat();
    assert_eq!(row.as_bytes().as_ref(), expected);
}

#[test]
fn a_wide_row_has_four_bytes_for_ids_and_ends() {
    let row = tuple([(2, Value::Int(1)), (256, Value::Bool(false))]);
    let expected = [2, 2, 0, 2, 0, 0, 0, 3, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1];
    assert_eq!(row.as_bytes().as_ref(), expected);
    let long = "x".repeat(70_000);
    let row = tuple([(1, Value::Text(&long)), (2, Value::Int(7))]);
    assert_eq!(row.get(ColumnId(1)), Some(Value::Text(&long)));
    assert_eq!(row.get(ColumnId(2)), Some(Value::Int(7)));
}

#[test]
fn long_elements_of_lists_are_read_back() {
    let long = "x".repeat(300_000);
    let items = [Value::Text(&long[..127]), Value::Text(&long[..128]), Value::Text(&long), Value::Int(1)];
    let row = tuple([(1, Value::List(List::from_values(&items)))]);
    assert_eq!(
        Tuple::validate(row.into_bytes()).unwrap().get(ColumnId(1)),
        Some(Value::List(List::from_values(&items)))
    );
}

#[test]
fn columns_out_of_order_are_refused() {
    for ids in [[2, 1], [1, 1], [0, 1], [-1, 1]] {
        let values = ids.map(|id| (ColumnId(id), Value::Null));
        assert!(matches!(Tuple::encode(values), Err(Error::ColumnOrder(_))), "{ids:?}");
    }
}

#[test]
fn lists_nested_without_end_are_refused() {
    let mut value = [Value::Null];
    for _ in 0..6 {
        value = [Value::List(List::from_values(Vec::from(value).leak()))];
    }
    let row = tuple([(1, value[0])]);
    assert_eq!(row.get(ColumnId(1)), Some(value[0]));
    let deeper = Value::List(List::from_values(&value));
    assert_eq!(Tuple::encode([(ColumnId(1), deeper)]), Err(Error::ListDepth));
}

/// Reads all values recursively; reading a value panics if it is damaged.
fn read_all(row: &Tuple) -> usize {
    row.reader().iter().map(|(_, value)| if let Value::List(list) = value { list.iter().count() } else { 1 }).sum()
}

#[test]
fn every_cut_and_every_changed_byte_is_refused_or_harmless() {
    let items = [Value::Int(1), Value::Null, Value::Text("é"), Value::Bytes(&[1, 2, 3])];
    let rows = [
        tuple([
            (1, Value::Int(-2)),
            (2, Value::Text("é")),
            (3, Value::List(List::from_values(&items))),
            (4, Value::Float8(1.0)),
        ]),
        tuple([(300, Value::Decimal(1 << 90)), (301, Value::Interval { months: 1, days: 2, nanos: 3 })]),
    ];
    for row in rows {
        let bytes = row.as_bytes();
        for length in 0..bytes.len() {
            assert!(Tuple::validate(bytes.slice(..length)).is_err(), "cut to {length}");
        }
        for position in 0..bytes.len() {
            for byte in 0..=255 {
                let mut changed = bytes.to_vec();
                changed[position] = byte;
                if let Ok(row) = Tuple::validate(changed.into()) {
                    read_all(&row);
                }
            }
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let bytes = (1..3_u8, 0..4_u8, proptest::collection::vec(prop_oneof![0..12_u8, any::<u8>()], 0..60));
    TestRunner::deterministic()
        .run(&bytes, |(format, count, rest)| {
            let bytes = [&[format, count, 0][..], &rest].concat();
            if let Ok(row) = Tuple::validate(bytes.into()) {
                read_all(&row);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_unknown_format_is_told_apart_from_damage() {
    assert_eq!(Tuple::validate(Bytes::from_static(&[9, 0, 0])), Err(Error::UnknownFormat(9)));
    assert_eq!(Tuple::validate(Bytes::from_static(&[1, 0, 0])).unwrap().reader().len(), 0);
    assert!(matches!(Tuple::validate(Bytes::new()), Err(Error::Damaged(_))));
}

#[test]
fn a_writer_is_used_again_after_a_failure() {
    let mut writer = TupleWriter::default();
    writer.push(ColumnId(3), Value::Int(1)).unwrap();
    assert_eq!(writer.push(ColumnId(2), Value::Int(1)), Err(Error::ColumnOrder(2)));
    writer.clear();
    writer.push(ColumnId(1), Value::Int(8)).unwrap();
    assert_eq!(writer.finish().unwrap(), tuple([(1, Value::Int(8))]));
    assert!(writer.finish().unwrap().reader().is_empty());
}

#[test]
fn a_row_with_other_values_is_as_one_that_was_encoded_with_them() {
    let id = |id| ColumnId(id);
    let long = "x".repeat(70_000);
    let row = Tuple::encode([(id(2), Value::Int(5)), (id(4), Value::Text("ab")), (id(7), Value::Null)]).unwrap();
    let cases: [Vec<(ColumnId, Value<'_>)>; 6] = [
        vec![],
        vec![(id(4), Value::Text("other"))],
        vec![(id(1), Value::Bool(true)), (id(9), Value::Float8(0.5))],
        vec![(id(2), Value::Null), (id(3), Value::Int(1 << 40)), (id(7), Value::Bytes(b"z"))],
        vec![(id(4), Value::Text(&long))],
        vec![(id(300), Value::Int(1))],
    ];
    for changes in cases {
        let mut expected: std::collections::BTreeMap<_, _> = row.reader().iter().collect();
        expected.extend(changes.iter().copied());
        assert_eq!(row.with_changes(changes).unwrap(), Tuple::encode(expected).unwrap());
    }
}
