use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, Decimal256Array, DictionaryArray, Int32Array, IntervalMonthDayNanoArray,
    LargeStringArray, ListArray, NullArray, StringArray, UInt32Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Int8Type, i256};
use bytes::BytesMut;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use postgres_types::{IsNull, ToSql, Type};
use proptest::prelude::*;
use rowstore::sample_values::all_samples;
use rowstore::{StoredColumn, encode_rows};
use types::sample_values::all_types;
use types::text::DateContext;
use types::{ColumnId, SessionZone, SqlType, TypeGroup};

use super::*;
use crate::decode::{ColumnBuilder, decode_parameter};
use crate::fixtures::text_style;

fn column(sql_type: &SqlType, texts: &[Option<&str>]) -> ArrayRef {
    let mut column = ColumnBuilder::new(sql_type, &DateContext::default(), texts.len());
    for text in texts {
        match text {
            Some(text) => column.push_text(text).unwrap_or_else(|error| panic!("{sql_type} {text:?}: {error}")),
            None => column.push_null(),
        }
    }
    column.finish()
}

fn texts(column: &ArrayRef, sql_type: &SqlType) -> Vec<Option<String>> {
    let mut encoder = TextEncoder::new(column, sql_type, &text_style(SessionZone::UTC)).unwrap();
    (0..column.len()).map(|row| encoder.text(row).map(str::to_owned)).collect()
}

fn binary(column: &ArrayRef, sql_type: &SqlType, row: usize) -> BytesMut {
    let mut out = BytesMut::new();
    BinaryEncoder::new(column, sql_type).unwrap().write_field(row, &mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Type with some of its values in canonical text.
fn examples() -> Vec<(SqlType, Vec<&'static str>)> {
    let array = |element: SqlType| SqlType::Array(Box::new(element));
    vec![
        (SqlType::Bool, vec!["t", "f"]),
        (SqlType::Int2, vec!["0", "-32768", "32767"]),
        (SqlType::Int4, vec!["0", "-2147483648", "2147483647"]),
        (SqlType::Int8, vec!["0", "-9223372036854775808", "9223372036854775807"]),
        (SqlType::Oid, vec!["0", "4294967295"]),
        (SqlType::Numeric { precision: 12, scale: 2 }, vec!["0.00", "-0.01", "1234567890.12", "-9999.90"]),
        (SqlType::Numeric { precision: 38, scale: 0 }, vec!["99999999999999999999999999999999999999", "10000"]),
        (SqlType::Numeric { precision: 38, scale: 37 }, vec!["-9.9999999999999999999999999999999999999"]),
        (SqlType::Numeric { precision: 38, scale: 38 }, vec!["0.00000000000000000000000000000000000001"]),
        (SqlType::BARE_NUMERIC, vec!["1.5000000000", "-1234567890123456789012345678.0000000001"]),
        (SqlType::Float4, vec!["1.5", "-0", "NaN", "Infinity", "1e+20"]),
        (SqlType::Float8, vec!["0.1", "-Infinity", "NaN", "1e-310"]),
        (SqlType::Text, vec!["", "ä€𝄞", "a longer text than fits a view's inline bytes"]),
        (SqlType::Varchar(Some(5)), vec!["abc", "äöüßé"]),
        (SqlType::Char(Some(4)), vec!["ab  ", "abcd"]),
        (SqlType::Name, vec!["pg_class"]),
        (SqlType::InternalChar, vec!["r"]),
        (SqlType::Date, vec!["1970-01-01", "0001-01-01", "9999-12-31", "2000-02-29"]),
        (SqlType::Time, vec!["00:00:00", "23:59:59.999999", "24:00:00"]),
        (SqlType::Timestamp, vec!["1999-12-31 23:59:59.5", "0001-01-01 00:00:00"]),
        (SqlType::TimestampTz, vec!["2024-02-29 12:00:00+00", "1969-07-20 20:17:40.000001+00"]),
        (SqlType::Interval, vec!["1 year 2 mons 3 days 04:05:06.789", "-1 days", "00:00:00"]),
        (SqlType::Bytea, vec!["\\x", "\\x00ff10"]),
        (SqlType::Uuid, vec!["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        (SqlType::Json, vec!["{\"a\" : [1, null]}", "3"]),
        (SqlType::Jsonb, vec!["{\"a\": [1, null]}", "\"x\""]),
        (array(SqlType::Int4), vec!["{}", "{1,NULL,-3}"]),
        (array(SqlType::Text), vec!["{a,\"b c\",\"NULL\",NULL,\"\",\"\\\"\\\\\"}"]),
        (array(SqlType::Numeric { precision: 5, scale: 1 }), vec!["{1.5,-9999.9}"]),
        (array(SqlType::Date), vec!["{2024-01-31}"]),
        (SqlType::OidVector, vec!["", "23 25"]),
        (SqlType::Int2Vector, vec!["1 -2"]),
    ]
}

#[test]
fn a_stored_row_is_written_as_its_column_is() {
    let style = text_style(SessionZone::parse("Europe/Berlin").unwrap());
    let mut written = 0;
    for (sql_type, values) in examples() {
        let given: Vec<_> = values.iter().copied().map(Some).chain([None]).collect();
        let column = column(&sql_type, &given);
        let missing = Some(column.slice(0, 1));
        let stored =
            |id, missing| StoredColumn { id: ColumnId(id), sql_type: sql_type.clone(), default_value: missing };
        let rows = encode_rows(std::slice::from_ref(&column), &[ColumnId(3)]).unwrap();
        for format in [Format::Text, Format::Binary] {
            // The column itself, and two that were added after the row was written.
            let columns = [stored(3, None), stored(4, missing.clone()), stored(5, None)];
            let Some(mut encoder) = StoredEncoder::new(&columns, [(&sql_type, format); 3], style.zone) else {
                continue;
            };
            let mut wanted = ColumnEncoder::new(format, &column, &sql_type, &style).unwrap();
            for (number, row) in rows.iter().enumerate() {
                let (mut found, mut expected) = (BytesMut::new(), BytesMut::new());
                encoder.write_row(row, &mut found);
                wanted.write_field(number, &mut expected);
                wanted.write_field(0, &mut expected);
                expected.extend_from_slice(&NULL_LENGTH.to_be_bytes());
                assert_eq!(hex(&found), hex(&expected), "{sql_type} {:?}", given[number]);
                written += 1;
            }
        }
    }
    assert!(100 < written, "{written}");
}

#[test]
fn every_type_survives_text_and_binary_with_nulls_in_place() {
    for (sql_type, values) in examples() {
        let mut given = vec![None];
        given.extend(values.iter().copied().map(Some));
        given.push(None);
        let first = column(&sql_type, &given);
        assert_eq!(first.data_type(), &sql_type.arrow_type(), "{sql_type}");
        let shown = texts(&first, &sql_type);
        assert_eq!(shown.iter().map(Option::as_deref).collect::<Vec<_>>(), given, "{sql_type}");
        let mut again = ColumnBuilder::new(&sql_type, &DateContext::default(), 0);
        for (row, given) in given.iter().enumerate() {
            let field = binary(&first, &sql_type, row);
            let length = i32::from_be_bytes(field[..4].try_into().unwrap());
            if length == -1 {
                assert!(given.is_none(), "{sql_type}");
                again.push_null();
            } else {
                assert_eq!(usize::try_from(length).unwrap(), field.len() - 4, "{sql_type}");
                again.push_binary(&field[4..]).unwrap_or_else(|error| panic!("{sql_type}: {error}"));
            }
        }
        assert_eq!(texts(&again.finish(), &sql_type), shown, "{sql_type}");
    }
}

/// Reads the column back from what an encoder writes; a value that the decoder refuses is an error in the list.
fn decoded(column: &ArrayRef, sql_type: &SqlType, format: Format) -> Vec<Result<ArrayRef, types::SqlError>> {
    let style = text_style(SessionZone::UTC);
    let mut encoder = ColumnEncoder::new(format, column, sql_type, &style).unwrap();
    let read = |row| {
        let mut field = BytesMut::new();
        encoder.write_field(row, &mut field);
        let mut builder = ColumnBuilder::new(sql_type, &DateContext::default(), 1);
        let (length, value) = field.split_at(4);
        let length = i32::from_be_bytes(length.try_into().unwrap());
        match (usize::try_from(length), format) {
            (Err(_), _) => builder.push_null(),
            (Ok(length), _) if length != value.len() => panic!("{sql_type}: {length} bytes announced of {field:?}"),
            (Ok(_), Format::Text) => builder.push_text(std::str::from_utf8(value).unwrap())?,
            (Ok(_), Format::Binary) => builder.push_binary(value)?,
        }
        Ok(builder.finish())
    };
    (0..column.len()).map(read).collect()
}

/// Conformance of the wire formats: all samples come back, but names of objects, whose decoding needs the catalog.
#[test]
fn all_samples_come_back_from_text_and_binary() {
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        for format in [Format::Text, Format::Binary] {
            for (row, read) in decoded(&column, &sql_type, format).into_iter().enumerate() {
                match read {
                    Ok(read) => assert_eq!(&read, &column.slice(row, 1), "{sql_type}, {format:?}"),
                    Err(error) => {
                        assert!(format == Format::Text && sql_type.needs_catalog(), "{sql_type}, {format:?}: {error}");
                        assert_eq!(error.condition, types::Condition::FeatureNotSupported, "{sql_type}: {error}");
                    }
                }
            }
        }
    }
}

/// Conformance of parameters: all samples come back with their type, numbers with their own digits.
#[test]
fn all_samples_come_back_as_parameters() {
    for sql_type in all_types().into_iter().filter(|sql_type| !sql_type.needs_catalog()) {
        let column = all_samples(&sql_type);
        for format in [Format::Text, Format::Binary] {
            let style = text_style(SessionZone::UTC);
            let mut encoder = ColumnEncoder::new(format, &column, &sql_type, &style).unwrap();
            for row in 0..column.len() {
                let mut field = BytesMut::new();
                encoder.write_field(row, &mut field);
                let bytes = column.is_valid(row).then(|| &field[4..]);
                let value = decode_parameter(1, bytes, format, &sql_type, &DateContext::default()).unwrap();
                assert_eq!(value.is_null(), column.is_null(row), "{sql_type}");
                let read = value.to_array().unwrap();
                assert_eq!(texts(&read, &sql_type.without_modifier()).len(), 1);
                if sql_type.group() != TypeGroup::Numeric && !is_numeric_array(&sql_type) {
                    assert_eq!(&read, &column.slice(row, 1), "{sql_type}, {format:?}");
                }
            }
        }
    }
}

fn is_numeric_array(sql_type: &SqlType) -> bool {
    sql_type.element().is_some_and(|element| element.group() == TypeGroup::Numeric)
}

/// Conformance of stored rows: each sample is written as the encoder of columns writes it, or the type is refused.
#[test]
fn all_samples_are_written_from_rows_as_from_columns() {
    let style = text_style(SessionZone::parse("Europe/Berlin").unwrap());
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        let rows = encode_rows(std::slice::from_ref(&column), &[ColumnId(1)]).unwrap();
        let stored = StoredColumn { id: ColumnId(1), sql_type: sql_type.clone(), default_value: None };
        for format in [Format::Text, Format::Binary] {
            let encoder = StoredEncoder::new(std::slice::from_ref(&stored), [(&sql_type, format)], style.zone);
            let is_refused = sql_type.element().is_some() || sql_type.needs_catalog();
            assert_eq!(encoder.is_none(), is_refused, "{sql_type}");
            let Some(mut encoder) = encoder else { continue };
            let mut wanted = ColumnEncoder::new(format, &column, &sql_type, &style).unwrap();
            for (number, row) in rows.iter().enumerate() {
                let (mut found, mut expected) = (BytesMut::new(), BytesMut::new());
                encoder.write_row(row, &mut found);
                wanted.write_field(number, &mut expected);
                assert_eq!(hex(&found), hex(&expected), "{sql_type}, row {number}");
            }
        }
    }
}

#[track_caller]
fn agrees<T: ToSql + Sync>(sql_type: &SqlType, text: &str, value: &T, wire: &Type) {
    let mut expected = BytesMut::new();
    assert!(matches!(value.to_sql_checked(wire, &mut expected).unwrap(), IsNull::No));
    let field = binary(&column(sql_type, &[Some(text)]), sql_type, 0);
    assert_eq!(hex(&field[4..]), hex(&expected), "{sql_type} {text}");
}

#[test]
fn binary_values_are_what_a_postgresql_driver_writes() {
    agrees(&SqlType::Bool, "t", &true, &Type::BOOL);
    agrees(&SqlType::Int2, "-2", &-2_i16, &Type::INT2);
    agrees(&SqlType::Int4, "70000", &70_000_i32, &Type::INT4);
    agrees(&SqlType::Int8, "-5000000000", &-5_000_000_000_i64, &Type::INT8);
    agrees(&SqlType::Float4, "1.5", &1.5_f32, &Type::FLOAT4);
    agrees(&SqlType::Float8, "-0.1", &-0.1_f64, &Type::FLOAT8);
    agrees(&SqlType::Text, "añb", &"añb", &Type::TEXT);
    agrees(&SqlType::Bytea, "\\x00ff", &vec![0_u8, 255], &Type::BYTEA);
    agrees(&SqlType::Oid, "4000000000", &4_000_000_000_u32, &Type::OID);
    let date = NaiveDate::from_ymd_opt(1999, 12, 31).unwrap();
    let time = NaiveTime::from_hms_micro_opt(23, 59, 58, 123_456).unwrap();
    agrees(&SqlType::Date, "1999-12-31", &date, &Type::DATE);
    agrees(&SqlType::Time, "23:59:58.123456", &time, &Type::TIME);
    agrees(&SqlType::Timestamp, "1999-12-31 23:59:58.123456", &date.and_time(time), &Type::TIMESTAMP);
    let universal: DateTime<Utc> = date.and_time(time).and_utc();
    agrees(&SqlType::TimestampTz, "1999-12-31 23:59:58.123456+00", &universal, &Type::TIMESTAMPTZ);
    let id = uuid::Uuid::from_u128(0xa0ee_bc99_9c0b_4ef8_bb6d_6bb9_bd38_0a11);
    agrees(&SqlType::Uuid, &id.to_string(), &id, &Type::UUID);
    agrees(&SqlType::Array(Box::new(SqlType::Int4)), "{1,NULL,3}", &vec![Some(1), None, Some(3)], &Type::INT4_ARRAY);
    agrees(&SqlType::Array(Box::new(SqlType::Text)), "{a,b}", &vec!["a", "b"], &Type::TEXT_ARRAY);
}

#[test]
fn numeric_and_interval_are_what_postgresql_sends() {
    // From `select encode(numeric_send(…), 'hex')`.
    for (text, precision, scale, expected) in [
        ("0", 1, 0, "0000000000000000"),
        ("1", 1, 0, "00010000000000000001"),
        ("10000", 5, 0, "00010001000000000001"),
        ("12345.678", 8, 3, "00030001000000030001" /* 1 */),
        ("-0.0001", 5, 4, "0001ffff400000040001"),
        ("0.00001", 6, 5, "0001fffe0000000503e8"),
        ("0.00", 5, 2, "0000000000000002"),
    ] {
        let sql_type = SqlType::Numeric { precision, scale };
        let field = binary(&column(&sql_type, &[Some(text)]), &sql_type, 0);
        let mut expected = expected.to_owned();
        if text == "12345.678" {
            // The digits 2345 and 6780 follow.
            expected.push_str("09291a7c");
        }
        assert_eq!(hex(&field[4..]), expected, "{text}");
    }
    let interval = binary(&column(&SqlType::Interval, &[Some("1 mon -2 days 00:00:01")]), &SqlType::Interval, 0);
    assert_eq!(hex(&interval), "0000001000000000000f4240fffffffe00000001");
}

#[test]
fn other_arrow_layouts_are_brought_into_form() {
    let shown = |array: ArrayRef, sql_type: &SqlType| texts(&array, sql_type).into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(shown(Arc::new(StringArray::from(vec!["a"])), &SqlType::Text), ["a"]);
    assert_eq!(shown(Arc::new(LargeStringArray::from(vec!["a"])), &SqlType::Varchar(None)), ["a"]);
    let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), None, Some("x")].into_iter().collect();
    assert_eq!(texts(&(Arc::new(dictionary) as ArrayRef), &SqlType::Text), [Some("x".into()), None, Some("x".into())]);
    assert_eq!(
        shown(Arc::new(UInt64Array::from(vec![u64::MAX])), &SqlType::Numeric { precision: 20, scale: 0 }),
        ["18446744073709551615"]
    );
    // A decimal column prints its own scale whatever the type was declared as.
    let decimal = Decimal128Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(shown(Arc::new(decimal), &SqlType::BARE_NUMERIC), ["1.50"]);
    let wide = Decimal256Array::from(vec![i256::from_i128(15)]).with_precision_and_scale(50, 1).unwrap();
    assert_eq!(shown(Arc::new(wide), &SqlType::Numeric { precision: 38, scale: 1 }), ["1.5"]);
    assert_eq!(texts(&(Arc::new(NullArray::new(2)) as ArrayRef), &SqlType::Int4), [None, None]);
    let wrong: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert!(TextEncoder::new(&wrong, &SqlType::Uuid, &text_style(SessionZone::UTC)).is_err());
}

#[test]
fn objects_are_names_in_text_and_numbers_in_binary() {
    let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![Some(23), None]));
    assert_eq!(texts(&numbers, &SqlType::Regclass), [Some("regclass 23".into()), None]);
    assert_eq!(texts(&numbers, &SqlType::Regrole), [Some("regrole 23".into()), None]);
    assert_eq!(texts(&numbers, &SqlType::Oid), [Some("23".into()), None]);
    assert_eq!(hex(&binary(&numbers, &SqlType::Regclass, 0)), "0000000400000017");
    let array = SqlType::Array(Box::new(SqlType::Regtype));
    let item = Arc::new(SqlType::Regtype.item_field());
    let lists: ArrayRef = Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2]), numbers, None));
    assert_eq!(texts(&lists, &array), [Some("{\"regtype 23\",NULL}".into())]);
}

#[test]
fn timestamps_are_shown_in_the_sessions_zone() {
    let column = column(&SqlType::TimestampTz, &[Some("2024-07-01 12:00:00+00"), Some("2024-01-01 12:00:00+00")]);
    let zone = SessionZone::parse("Europe/Berlin").unwrap();
    let mut encoder = TextEncoder::new(&column, &SqlType::TimestampTz, &text_style(zone)).unwrap();
    assert_eq!(encoder.text(0), Some("2024-07-01 14:00:00+02"));
    assert_eq!(encoder.text(1), Some("2024-01-01 13:00:00+01"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_numeric_survives_binary(value in -(10_i128.pow(38) - 1)..10_i128.pow(38), shrink in 0_u32..38, scale in 0_u8..=38) {
        let value = value / 10_i128.pow(shrink);
        let sql_type = SqlType::Numeric { precision: 38, scale };
        let array: ArrayRef = Arc::new(
            Decimal128Array::from(vec![value]).with_precision_and_scale(38, scale.try_into().unwrap()).unwrap(),
        );
        let field = binary(&array, &sql_type, 0);
        let mut again = ColumnBuilder::new(&sql_type, &DateContext::default(), 1);
        again.push_binary(&field[4..]).unwrap();
        prop_assert_eq!(texts(&again.finish(), &sql_type), texts(&array, &sql_type));
    }

    #[test]
    fn any_interval_survives_binary(months: i32, days: i32, us in -9_000_000_000_000_000_i64..9_000_000_000_000_000) {
        let value = arrow::datatypes::IntervalMonthDayNano { months, days, nanoseconds: us * 1000 };
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![value]));
        let field = binary(&array, &SqlType::Interval, 0);
        let mut again = ColumnBuilder::new(&SqlType::Interval, &DateContext::default(), 1);
        again.push_binary(&field[4..]).unwrap();
        prop_assert_eq!(&again.finish(), &array);
    }

    #[test]
    fn any_text_survives_an_array(values in prop::collection::vec(prop::option::of("\\PC{0,12}"), 0..5)) {
        let sql_type = SqlType::Array(Box::new(SqlType::Text));
        let mut list = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
        list.append_value(values);
        let array: ArrayRef = Arc::new(list.finish());
        let shown = texts(&array, &sql_type);
        let again = column(&sql_type, &[shown[0].as_deref()]);
        prop_assert_eq!(texts(&again, &sql_type), shown);
    }
}
