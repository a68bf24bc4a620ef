use proptest::prelude::*;

use super::*;

#[test]
fn bounds_are_read_and_what_lies_beyond_is_refused() {
    assert_eq!(parse_int2(" -32768 "), Ok(i16::MIN));
    assert_eq!(parse_int4("+2147483647"), Ok(i32::MAX));
    assert_eq!(parse_int8("-9223372036854775808"), Ok(i64::MIN));
    let error = parse_int4("2147483648").unwrap_err();
    assert_eq!(error.condition, Condition::NumericValueOutOfRange);
    assert_eq!(error.message, "value \"2147483648\" is out of range for type integer");
    assert!(parse_int8("9223372036854775808").is_err());
    assert!(parse_int8("99999999999999999999999999").is_err());
}

#[test]
fn what_is_no_integer_is_refused() {
    for text in ["", "-", "1.0", "1 2", "0x10", "abc"] {
        assert_eq!(parse_int4(text).unwrap_err().condition, Condition::InvalidTextRepresentation, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(value: i64) {
        let mut text = String::new();
        format_int(value, &mut text);
        prop_assert_eq!(&text, &value.to_string());
        prop_assert_eq!(parse_int8(&text), Ok(value));
    }
}
