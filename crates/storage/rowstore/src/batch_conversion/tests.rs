use std::sync::Arc;

use arrow::array::{AsArray, Int32Array, StringViewArray};
use arrow::datatypes::Int32Type;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use types::sample_values::all_types;

use super::*;
use crate::sample_values::{all_samples, sample_column};
use crate::value::random_values::values_of;

fn stored(id: i32, sql_type: SqlType, missing: Option<ArrayRef>) -> StoredColumn {
    StoredColumn { id: ColumnId(id), sql_type, default_value: missing }
}

#[test]
fn a_batch_of_all_types_comes_back_as_it_was() {
    let mut runner = TestRunner::deterministic();
    for rows in [0, 1, 57] {
        let wanted: Vec<_> = (1..).zip(all_types()).map(|(id, sql_type)| stored(id, sql_type, None)).collect();
        let columns: Vec<_> = wanted
            .iter()
            .map(|StoredColumn { sql_type, .. }| {
                let samples = proptest::collection::vec(values_of(sql_type), rows).new_tree(&mut runner).unwrap();
                sample_column(sql_type, &samples.current())
            })
            .collect();
        let ids: Vec<_> = wanted.iter().map(|column| column.id).collect();
        let tuples = encode_rows(&columns, &ids).unwrap();
        assert_eq!(tuples.len(), rows);
        let read = decode_columns(&tuples, &wanted, rows).unwrap();
        for ((written, read), wanted) in columns.iter().zip(&read).zip(&wanted) {
            assert_eq!(written, read, "{}", wanted.sql_type);
        }
    }
}

#[test]
fn all_samples_come_back_from_their_stored_form() {
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        let tuples = encode_rows(std::slice::from_ref(&column), &[ColumnId(1)]).unwrap();
        let stored_rows: Vec<_> =
            tuples.into_iter().map(|tuple| Tuple::validate(tuple.into_bytes()).unwrap()).collect();
        let read = decode_columns(&stored_rows, &[stored(1, sql_type.clone(), None)], column.len()).unwrap();
        assert_eq!(read, [column], "{sql_type}");
    }
}

#[test]
fn rows_of_several_ages_are_one_batch() {
    let old = encode_rows(
        &[Arc::new(Int32Array::from(vec![1, 2])), Arc::new(StringViewArray::from(vec!["a", "b"]))],
        &[ColumnId(1), ColumnId(2)],
    )
    .unwrap();
    // Since then column 2 was dropped, 3 added with a default and 4 added without.
    let new = encode_rows(
        &[
            Arc::new(Int32Array::from(vec![3])),
            Arc::new(Int32Array::from(vec![None])),
            Arc::new(Int32Array::from(vec![5])),
        ],
        &[ColumnId(1), ColumnId(3), ColumnId(4)],
    )
    .unwrap();
    let seven: ArrayRef = Arc::new(Int32Array::from(vec![7]));
    let wanted =
        [stored(4, SqlType::Int4, None), stored(1, SqlType::Int4, None), stored(3, SqlType::Int4, Some(seven))];
    let columns = decode_columns(old.iter().chain(&new).chain(&old[..1]), &wanted, 4).unwrap();
    let ints = |index: usize| columns[index].as_primitive::<Int32Type>().iter().collect::<Vec<_>>();
    assert_eq!(ints(0), [None, None, Some(5), None]);
    assert_eq!(ints(1), [Some(1), Some(2), Some(3), Some(1)]);
    assert_eq!(ints(2), [Some(7), Some(7), None, Some(7)]);
}

#[test]
fn a_builder_makes_batch_after_batch() {
    let rows = encode_rows(&[Arc::new(Int32Array::from(vec![1, 2, 3]))], &[ColumnId(1)]).unwrap();
    let wanted = [stored(1, SqlType::Int4, None)];
    let mut builder = BatchBuilder::new(&wanted, 2).unwrap();
    builder.push(rows[0].reader()).unwrap();
    builder.push(rows[1].reader()).unwrap();
    assert_eq!(builder.rows(), 2);
    assert_eq!(builder.finish()[0].len(), 2);
    builder.push(rows[2].reader()).unwrap();
    assert_eq!(builder.rows(), 1);
    assert_eq!(builder.finish()[0].as_primitive::<Int32Type>().values(), &[3]);
}

#[test]
fn a_row_of_another_type_than_the_column_is_refused() {
    let rows = encode_rows(&[Arc::new(Int32Array::from(vec![1]))], &[ColumnId(1)]).unwrap();
    let wanted = [stored(1, SqlType::Text, None)];
    assert!(matches!(decode_columns(&rows, &wanted, 1), Err(Error::TypeMismatch { .. })));
    let empty: ArrayRef = Arc::new(Int32Array::from(Vec::<i32>::new()));
    assert!(BatchBuilder::new(&[stored(1, SqlType::Int4, Some(empty))], 1).is_err());
}
