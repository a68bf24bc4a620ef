use datafusion::common::ScalarValue;
use types::text::DateContext;
use types::{Condition, SqlError, SqlType};

use super::*;

fn text(sql_type: &SqlType, value: &str) -> Result<ScalarValue, SqlError> {
    decode_parameter(1, Some(value.as_bytes()), Format::Text, sql_type, &DateContext::default())
}

fn binary(sql_type: &SqlType, value: &[u8]) -> Result<ScalarValue, SqlError> {
    decode_parameter(2, Some(value), Format::Binary, sql_type, &DateContext::default())
}

#[test]
fn a_null_of_any_type_is_a_null_of_that_type() {
    for sql_type in SqlType::scalars().chain([SqlType::Array(Box::new(SqlType::Int4))]) {
        let value = decode_parameter(1, None, Format::Text, &sql_type, &DateContext::default()).unwrap();
        assert!(value.is_null(), "{sql_type}");
        // A NULL has the fewest digits, so that it never widens the type of another numeric.
        let is_numeric = matches!(sql_type, SqlType::Numeric { .. });
        let expected = if is_numeric { SqlType::Numeric { precision: 1, scale: 0 } } else { sql_type };
        assert_eq!(value.data_type(), expected.arrow_type());
    }
}

#[test]
fn a_numeric_parameter_keeps_its_own_digits() {
    assert_eq!(text(&SqlType::BARE_NUMERIC, "12.340").unwrap(), ScalarValue::Decimal128(Some(12_340), 5, 3));
    assert_eq!(text(&SqlType::BARE_NUMERIC, "-7").unwrap(), ScalarValue::Decimal128(Some(-7), 1, 0));
    assert_eq!(text(&SqlType::BARE_NUMERIC, "1e3").unwrap(), ScalarValue::Decimal128(Some(1000), 4, 0));
    let small = "0.00000000000000000001";
    assert_eq!(text(&SqlType::BARE_NUMERIC, small).unwrap(), ScalarValue::Decimal128(Some(1), 20, 20));
    // 12.340 as sent by a driver: digits 12 and 3400, three decimals.
    let sent = [0, 2, 0, 0, 0, 0, 0, 3, 0, 12, 0x0d, 0x48];
    assert_eq!(binary(&SqlType::BARE_NUMERIC, &sent).unwrap(), ScalarValue::Decimal128(Some(12_340), 5, 3));
    let list = text(&SqlType::Array(Box::new(SqlType::BARE_NUMERIC)), "{1.5,NULL,22.25}").unwrap();
    let element = SqlType::Numeric { precision: 4, scale: 2 };
    assert_eq!(list.data_type(), SqlType::Array(Box::new(element)).arrow_type());
}

#[test]
fn text_that_is_no_value_is_refused_in_postgresqls_words() {
    let error = text(&SqlType::Int4, "abc").unwrap_err();
    assert_eq!(error.condition, Condition::InvalidTextRepresentation);
    assert_eq!(error.message, "invalid input syntax for type integer: \"abc\"");
    let error = decode_parameter(1, Some(b"\xff"), Format::Text, &SqlType::Text, &DateContext::default()).unwrap_err();
    assert_eq!(error.condition, Condition::CharacterNotInRepertoire);
    let error = decode_parameter(1, Some(b"a\0b"), Format::Text, &SqlType::Text, &DateContext::default()).unwrap_err();
    assert_eq!(error.message, "invalid byte sequence for encoding \"UTF8\": 0x00");
}

#[test]
fn bytes_left_over_and_bytes_missing_are_told_apart() {
    let error = binary(&SqlType::Int4, &[0; 5]).unwrap_err();
    assert_eq!(error.condition, Condition::InvalidBinaryRepresentation);
    assert_eq!(error.message, "incorrect binary data format in bind parameter 2");
    let error = binary(&SqlType::Int4, &[0; 3]).unwrap_err();
    assert_eq!(error.condition, Condition::ProtocolViolation);
    assert_eq!(error.message, "insufficient data left in message");
    assert_eq!(binary(&SqlType::Bool, &[]).unwrap_err().condition, Condition::ProtocolViolation);
    assert_eq!(binary(&SqlType::Uuid, &[0; 17]).unwrap_err().condition, Condition::InvalidBinaryRepresentation);
}

#[test]
fn malformed_numerics_are_refused() {
    let refused = |bytes: &[u8], message: &str| {
        assert_eq!(binary(&SqlType::BARE_NUMERIC, bytes).unwrap_err().message, message);
    };
    refused(&[0, 0, 0, 0, 0x12, 0x34, 0, 0], "invalid sign in external \"numeric\" value");
    refused(&[0, 0, 0, 0, 0, 0, 0x40, 0], "invalid scale in external \"numeric\" value");
    refused(&[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10], "invalid digit in external \"numeric\" value");
    refused(&[0, 2, 0, 0, 0, 0, 0, 0, 0, 1], "insufficient data left in message");
    assert_eq!(
        binary(&SqlType::BARE_NUMERIC, &[0, 0, 0, 0, 0xc0, 0, 0, 0]).unwrap_err().condition,
        Condition::FeatureNotSupported
    );
}

#[test]
fn a_number_of_more_digits_than_a_numeric_has_is_its_text() {
    let long = "0.1000000000000000055511151231257827021181583404541015625";
    let whole = |text: &str| ScalarValue::Utf8View(Some(text.to_owned()));
    assert_eq!(text(&SqlType::BARE_NUMERIC, long).unwrap(), whole(long));
    assert_eq!(text(&SqlType::BARE_NUMERIC, "1e40").unwrap(), whole("1e40"));
    assert_eq!(text(&SqlType::BARE_NUMERIC, "1e").unwrap_err().condition, Condition::InvalidTextRepresentation);
    // 10^131068, the largest weight a driver can send.
    let huge = [0, 1, 0x7f, 0xff, 0, 0, 0, 0, 0, 1];
    let digits = format!("00001{}", "0".repeat(131_068));
    assert_eq!(binary(&SqlType::BARE_NUMERIC, &huge).unwrap(), whole(&digits));
    let array = SqlType::Array(Box::new(SqlType::BARE_NUMERIC));
    assert_eq!(text(&array, "{1e40}").unwrap_err().condition, Condition::NumericValueOutOfRange);
}

#[test]
fn malformed_arrays_are_refused() {
    let array = SqlType::Array(Box::new(SqlType::Int4));
    let header = |dimensions: i32, flags: i32, oid: u32| {
        let mut bytes = dimensions.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(oid.to_be_bytes());
        bytes
    };
    let condition = |bytes: &[u8]| binary(&array, bytes).unwrap_err().condition;
    assert_eq!(condition(&header(2, 0, 23)), Condition::FeatureNotSupported);
    assert_eq!(condition(&header(-1, 0, 23)), Condition::InvalidBinaryRepresentation);
    assert_eq!(condition(&header(0, 7, 23)), Condition::InvalidBinaryRepresentation);
    assert_eq!(condition(&header(0, 0, 25)), Condition::DatatypeMismatch);
    let mut forged = header(1, 0, 23);
    forged.extend(i32::MAX.to_be_bytes());
    forged.extend(1_i32.to_be_bytes());
    assert_eq!(condition(&forged), Condition::ProtocolViolation);
}

#[test]
fn dates_and_times_outside_what_kiln_holds_are_refused() {
    let refusal = |sql_type: &SqlType, bytes: &[u8]| binary(sql_type, bytes).unwrap_err();
    assert_eq!(refusal(&SqlType::Date, &(i32::MAX - 1).to_be_bytes()).message, "date out of range");
    assert_eq!(refusal(&SqlType::Timestamp, &(i64::MAX - 1).to_be_bytes()).message, "timestamp out of range");
    for (sql_type, bytes) in [
        (SqlType::Date, i32::MAX.to_be_bytes().to_vec()),
        (SqlType::Date, i32::MIN.to_be_bytes().to_vec()),
        (SqlType::Timestamp, i64::MAX.to_be_bytes().to_vec()),
        (SqlType::TimestampTz, i64::MIN.to_be_bytes().to_vec()),
    ] {
        let infinite = refusal(&sql_type, &bytes);
        assert_eq!(infinite.condition, Condition::FeatureNotSupported, "{sql_type}");
        assert!(infinite.message.contains("infinity"), "{}", infinite.message);
    }
    assert_eq!(binary(&SqlType::Time, &(-1_i64).to_be_bytes()).unwrap_err().message, "time out of range");
    let mut interval = i64::MAX.to_be_bytes().to_vec();
    interval.extend([0; 8]);
    assert_eq!(binary(&SqlType::Interval, &interval).unwrap_err().message, "interval out of range");
}

#[test]
fn a_failed_element_leaves_no_trace_in_the_next_array() {
    let sql_type = SqlType::Array(Box::new(SqlType::Int4));
    let mut column = ColumnBuilder::new(&sql_type, &DateContext::default(), 2);
    assert!(column.push_text("{1,2,x}").is_err());
    column.push_null();
    column.push_text("{3}").unwrap();
    let array = column.finish();
    let mut encoder =
        crate::encode::TextEncoder::new(&array, &sql_type, &crate::fixtures::text_style(types::SessionZone::UTC))
            .unwrap();
    assert_eq!((encoder.text(0), array.len()), (None, 2));
    assert_eq!(encoder.text(1), Some("{3}"));
}
