use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, Float32Array, IntervalMonthDayNanoArray, ListArray,
};
use arrow::compute::take;
use arrow::datatypes::{Int32Type, IntervalMonthDayNano};
use rowstore::sample_values::all_samples;
use types::sample_values::all_types;

use super::{from_array, is_supported, to_array};
use crate::sort::compare;
use crate::vector::{concat, interleave};
use crate::{Bitmap, Column, PhysicalType};

/// Returns arrays of types without numbers or strings of their own, with and without NULLs.
fn arrays() -> Vec<ArrayRef> {
    let uuid = |byte: u8| [byte, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, byte];
    let uuids = [Some(uuid(0)), None, Some(uuid(255)), Some(uuid(127)), Some(uuid(128))];
    let span = |months, days, nanoseconds| Some(IntervalMonthDayNano::new(months, days, nanoseconds));
    let lists = [Some(vec![Some(1), None]), Some(vec![]), None, Some(vec![Some(7)]), Some(vec![Some(i32::MIN)])];
    vec![
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids.into_iter(), 16).unwrap()),
        Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::NAN), Some(-0.0), Some(f32::MAX)])),
        Arc::new(Float32Array::from(vec![0.1, 0.2, 0.3, 1.0e-40, f32::INFINITY])),
        Arc::new(BinaryArray::from_opt_vec(vec![
            Some(b"".as_slice()),
            Some(b"\xff\x00"),
            None,
            Some(b"a"),
            Some(b"b"),
        ])),
        Arc::new(IntervalMonthDayNanoArray::from(vec![span(1, 2, 3), None, span(-1, 0, 9), span(0, 0, 0), None])),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
    ]
}

fn same(found: &ArrayRef, expected: &ArrayRef, what: &str) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{what}");
}

/// Conformance of the engine's columns: the samples of every type come back from their physical type.
#[test]
fn all_samples_come_back() {
    for sql_type in all_types() {
        let values = all_samples(&sql_type);
        assert!(is_supported(values.data_type()), "the engine leaves queries with {sql_type} to other operators");
        let column = from_array(&values).unwrap();
        same(&to_array(&column, values.data_type()).unwrap(), &values, &sql_type.to_string());
    }
}

#[test]
fn columns_of_any_type_come_back_as_they_were() {
    for values in arrays() {
        let form = from_array(&values).unwrap();
        let back = |column: &Column| to_array(column, values.data_type()).unwrap();
        let named = values.data_type();
        same(&back(&form), &values, &format!("{named}"));
        let rows = [4, 0, 1, 1, 3_u32];
        let taken = take(&values, &arrow::array::UInt32Array::from(rows.to_vec()), None).unwrap();
        same(&back(&form.take(&rows).unwrap()), &taken, &format!("{named}, some rows"));
        same(&back(&form.slice(1, 4)), &values.slice(1, 3), &format!("{named}, neighbours"));
        let whole = arrow::compute::concat(&[&values, &values.slice(2, 2)]).unwrap();
        let pieces = vec![form.clone(), form.slice(2, 4)];
        same(&back(&concat(pieces, PhysicalType::from_column(&form)).unwrap()), &whole, &format!("{named}, pieces"));
        let none = PhysicalType::from_column(&form).null_column(2);
        let whole = arrow::compute::concat(&[&arrow::array::new_null_array(named, 2), &values]).unwrap();
        let found = concat(vec![none.clone(), form.clone()], PhysicalType::from_column(&form)).unwrap();
        same(&back(&found), &whole, &format!("{named} after NULLs"));
        let picks = [(1, 0), (0, 3), (1, 1), (0, 0)];
        let picked = interleave(&[&form, &none], &picks, PhysicalType::from_column(&form)).unwrap();
        let found = back(&picked);
        assert!(found.is_null(0) && found.is_null(2), "{named}");
        same(&found.slice(1, 1), &values.slice(3, 1), &format!("{named}, picked"));
        // Rows that an outer join pads with NULLs.
        let fewer = Column { validity: Some(Arc::new(Bitmap::from_fn(5, |row| row == 3))), ..form };
        let found = back(&fewer);
        assert_eq!(found.null_count(), 4, "{named}");
        same(&found.slice(3, 1), &values.slice(3, 1), &format!("{named}, one row"));
    }
}

#[test]
fn uuids_are_in_the_order_of_their_bytes() {
    let values = &arrays()[0];
    let form = from_array(values).unwrap();
    let mut rows = vec![2, 0, 4, 3];
    rows.sort_by(|x, y| compare::compare_values(&form, *x, &form, *y).unwrap());
    assert_eq!(rows, [0, 3, 4, 2]);
}
