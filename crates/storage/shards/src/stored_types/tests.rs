use super::*;

fn interval(months: i32, days: i32, microseconds: i64) -> IntervalMonthDayNano {
    IntervalMonthDayNano::new(months, days, microseconds * NANOS_PER_MICRO)
}

#[test]
fn an_interval_is_stored_as_months_days_and_microseconds() {
    let values: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
        Some(interval(14, -3, 1_000_001)),
        None,
        Some(interval(0, 0, -1)),
    ]));
    let stored = to_stored(&values).unwrap();
    let bytes = stored.as_fixed_size_binary();
    assert_eq!(bytes.value(0), [14, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff, 0x41, 0x42, 0x0f, 0, 0, 0, 0, 0]);
    assert!(bytes.is_null(1));
    assert_eq!(&decode_stored(&stored, &SqlType::Interval).unwrap(), &values);
}

#[test]
fn an_array_keeps_its_form_around_stored_elements() {
    let sql_type = SqlType::Array(Box::new(SqlType::Interval));
    let mut builder = arrow::array::ListBuilder::new(arrow::array::IntervalMonthDayNanoBuilder::new())
        .with_field(SqlType::Interval.item_field());
    builder.append_value([Some(interval(1, 2, 3)), None]);
    builder.append_null();
    builder.append_value([]);
    let values: ArrayRef = Arc::new(builder.finish());
    assert_eq!(values.data_type(), &sql_type.arrow_type());
    let stored = to_stored(&values).unwrap();
    assert_eq!(stored.data_type(), &stored_type(&sql_type));
    assert_eq!(&decode_stored(&stored, &sql_type).unwrap(), &values);
}

#[test]
fn other_types_are_stored_as_they_are() {
    let values: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![1, 2]));
    assert_eq!(&to_stored(&values).unwrap(), &values);
    assert!(matches!(decode_stored(&values, &SqlType::Interval), Err(Error::Arrow(_))));
}
