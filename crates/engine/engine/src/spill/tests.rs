use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Builder, IntervalMonthDayNanoArray, ListBuilder, StringViewArray, StringViewBuilder,
};
use arrow::datatypes::IntervalMonthDayNano;
use proptest::prelude::*;

use super::{HashPartitioning, PARTITION_LEVELS, PARTITIONS, decode, encode};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, PhysicalType, arrow_convert};

/// Value of a row in any form.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number(i128),
    Float(u64),
    Text(String),
}

fn value(column: &Column, row: usize) -> Value {
    if !column.is_valid(row) {
        return Value::Null;
    }
    match &column.data {
        ColumnData::Bools(bits) => Value::Bool(bits.get(row)),
        ColumnData::Ints { values, bounds } => {
            let value = i128::from(values[row]);
            assert!(bounds.min <= value && value <= bounds.max, "{value} beyond {bounds:?}");
            Value::Number(value)
        }
        ColumnData::WideInts(values) => Value::Number(values[row]),
        ColumnData::Floats(values) => Value::Float(values[row].to_bits()),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            Value::Text(strings.get(codes[row]).to_owned())
        }
        ColumnData::Texts(texts) => Value::Text(texts.value(row).to_owned()),
        ColumnData::Opaque(array) => Value::Text(format!("{:?}", array.slice(row, 1))),
    }
}

fn values(batches: &[Batch]) -> Vec<Vec<Value>> {
    let row = |batch: &Batch, row: usize| batch.columns.iter().map(|column| value(column, row)).collect();
    batches.iter().flat_map(|batch| (0..batch.rows).map(move |at| row(batch, at))).collect()
}

fn ints(values: Vec<i64>) -> ColumnData {
    ColumnData::Ints { values: Arc::new(values), bounds: Bounds::I64 }
}

fn texts(numbers: &[i64]) -> Vec<String> {
    numbers.iter().map(|number| if number % 3 == 0 { String::new() } else { format!("a text ü {number}") }).collect()
}

/// Creates columns of all forms with the same numbers.
fn batch(numbers: &[i64], spread: i64, nulls: &[bool]) -> Batch {
    let rows = numbers.len();
    let few: Vec<i64> = numbers.iter().map(|number| number.rem_euclid(spread)).collect();
    let strings = Dictionary::new(StringViewArray::from_iter_values(texts(&(0..spread).collect::<Vec<_>>())));
    let data = [
        ColumnData::Bools(Arc::new(Bitmap::from_fn(rows, |row| few[row] % 2 == 0))),
        ints(numbers.to_vec()),
        ints(few.clone()),
        ColumnData::WideInts(Arc::new(numbers.iter().map(|number| i128::from(*number) << 40).collect())),
        ColumnData::Floats(Arc::new(numbers.iter().map(|number| f64::from_bits(number.cast_unsigned())).collect())),
        ColumnData::Texts(StringViewArray::from_iter_values(texts(numbers))),
        ColumnData::Dictionary {
            indices: Arc::new(few.iter().map(|code| *code as u32).collect()),
            dictionary: strings,
        },
    ];
    let carried = arrays(numbers, nulls);
    let plain = data.iter().map(|data| Column::new(data.clone()));
    let valid = Arc::new(Bitmap::from_fn(rows, |row| !nulls[row]));
    let partly = data.iter().map(|data| Column { data: data.clone(), validity: Some(Arc::clone(&valid)) });
    Batch { rows, columns: plain.chain(partly).chain(carried).collect() }
}

/// Creates columns of each type that is not compared, with NULLs both in the arrays and in the columns' validity.
fn arrays(numbers: &[i64], nulls: &[bool]) -> Vec<Column> {
    let rows = || numbers.iter().zip(nulls);
    let list = |number: i64| (0..number.rem_euclid(4)).map(move |at| (at != 1).then_some(number as i32));
    let texts = |number: i64| list(number).map(|value| value.map(|value| format!("element {value}")));
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut text_lists = ListBuilder::new(StringViewBuilder::new());
    let mut bytes = BinaryBuilder::new();
    for (number, is_null) in rows() {
        match is_null {
            true => {
                lists.append_null();
                text_lists.append_null();
                bytes.append_null();
            }
            false => {
                lists.append_value(list(*number));
                text_lists.append_value(texts(*number));
                bytes.append_value(&number.to_le_bytes()[..number.rem_euclid(9) as usize]);
            }
        }
    }
    let span = |number: i64| IntervalMonthDayNano::new(number as i32, (number >> 32) as i32, number);
    let spans = rows().map(|(number, is_null)| (!is_null).then(|| span(*number)));
    let arrays: [ArrayRef; 4] = [
        Arc::new(lists.finish()),
        Arc::new(text_lists.finish()),
        Arc::new(bytes.finish()),
        Arc::new(spans.collect::<IntervalMonthDayNanoArray>()),
    ];
    let mut columns: Vec<Column> = arrays.iter().map(|array| arrow_convert::from_array(array).unwrap()).collect();
    let fewer = Some(Arc::new(Bitmap::from_fn(nulls.len(), |row| !nulls[row] && row % 3 != 0)));
    columns.extend(columns.clone().into_iter().map(|column| Column { validity: fewer.clone(), ..column }));
    columns.push(PhysicalType::Opaque.null_column(numbers.len()));
    columns
}

fn any_batch() -> impl Strategy<Value = Batch> {
    let number = prop_oneof![any::<i64>(), -3_i64..200, 0_i64..70_000, Just(i64::MIN), Just(i64::MAX)];
    let rows = proptest::collection::vec((number, any::<bool>()), 0..300);
    (rows, 1_i64..80).prop_map(|(rows, spread)| {
        let (numbers, nulls): (Vec<i64>, Vec<bool>) = rows.into_iter().unzip();
        batch(&numbers, spread, &nulls)
    })
}

proptest! {
    #[test]
    fn rows_come_back_from_bytes(batches in proptest::collection::vec(any_batch(), 1..4)) {
        let read = decode(&encode(&batches).unwrap()).unwrap();
        prop_assert_eq!(values(&[read]), values(&batches));
    }

    #[test]
    fn damaged_bytes_are_an_error_or_other_rows(batch in any_batch(), at in any::<usize>(), with in any::<u8>()) {
        let mut bytes = encode(std::slice::from_ref(&batch)).unwrap();
        let at = at % bytes.len();
        prop_assert!(decode(&bytes[..at]).is_err());
        bytes[at] ^= with;
        if let Ok(read) = decode(&bytes) {
            values(&[read]);
        }
    }

    #[test]
    fn parts_have_all_rows_once(batch in any_batch(), key in 0_usize..14, level in 0..PARTITION_LEVELS, equal in any::<bool>()) {
        let parting = HashPartitioning { keys: vec![key], nulls_are_equal: equal, level };
        let mut parts = vec![Vec::new(); PARTITIONS];
        parting.partition(&batch, |part, batch| { parts[part].push(batch); Ok(()) }).unwrap();
        let mut divided: Vec<String> = parts.iter().flat_map(|part| values(part)).map(|row| format!("{row:?}")).collect();
        let mut all: Vec<String> = values(&[batch]).iter().map(|row| format!("{row:?}")).collect();
        divided.sort();
        all.sort();
        prop_assert_eq!(divided, all);
        // Rows with equal keys are in the same partition.
        let mut part_of = std::collections::HashMap::new();
        for (part, batches) in parts.iter().enumerate() {
            for row in values(batches) {
                let is_loose = row[key] == Value::Null && !equal;
                let first = *part_of.entry(format!("{:?}", row[key])).or_insert(part);
                prop_assert!(is_loose || first == part, "rows of a key are in two parts");
            }
        }
    }
}

#[test]
fn keys_in_any_form_belong_together() {
    let numbers: Vec<i64> = (-500..500).collect();
    let strings = Dictionary::new(StringViewArray::from_iter_values(texts(&numbers)));
    let rows = numbers.len();
    let codes = ColumnData::Dictionary { indices: Arc::new((0..rows as u32).collect()), dictionary: strings };
    let pairs = [
        (
            ints(numbers.clone()),
            ColumnData::WideInts(Arc::new(numbers.iter().map(|number| i128::from(*number)).collect())),
        ),
        (ColumnData::Texts(StringViewArray::from_iter_values(texts(&numbers))), codes),
        (
            ColumnData::Floats(Arc::new(vec![0.0, f64::NAN, 1.5])),
            ColumnData::Floats(Arc::new(vec![-0.0, -f64::NAN, 1.5])),
        ),
    ];
    for (one, other) in pairs {
        let parting = HashPartitioning { keys: vec![0], nulls_are_equal: false, level: 1 };
        let parts = |data: ColumnData| {
            let column = Column::new(data);
            let (rows, place) = (column.rows(), ints((0..column.rows() as i64).collect()));
            let mut part_of = vec![None; rows];
            let batch = Batch { rows, columns: vec![column, Column::new(place)] };
            parting
                .partition(&batch, |part, batch| {
                    let ColumnData::Ints { values, .. } = &batch.columns[1].data else { panic!("places") };
                    values.iter().for_each(|row| part_of[*row as usize] = Some(part));
                    Ok(())
                })
                .unwrap();
            part_of
        };
        assert_eq!(parts(one), parts(other));
    }
}

#[test]
fn rows_without_columns_are_counted() {
    let batches = [Batch { rows: 7, columns: Vec::new() }, Batch { rows: 5, columns: Vec::new() }];
    assert_eq!(decode(&encode(&batches).unwrap()).unwrap().rows, 12);
    let parting = HashPartitioning { keys: Vec::new(), nulls_are_equal: true, level: 0 };
    assert_eq!(parting.next_level(), None, "nothing would be divided");
    parting
        .partition(&batches[0], |part, batch| {
            assert_eq!((part, batch.rows), (0, 7));
            Ok(())
        })
        .unwrap();
}
