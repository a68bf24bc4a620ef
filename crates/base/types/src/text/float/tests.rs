use proptest::prelude::*;

use super::*;

fn spell8(value: f64) -> String {
    let mut text = String::new();
    format_float8(value, &mut text);
    text
}

fn spell4(value: f32) -> String {
    let mut text = String::new();
    format_float4(value, &mut text);
    text
}

#[test]
fn doubles_are_spelled_as_postgresql_does() {
    for (value, text) in [
        (1.0, "1"),
        (0.1, "0.1"),
        (-0.0, "-0"),
        (1e20, "1e+20"),
        (1e15, "1e+15"),
        (1e14, "100000000000000"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123_456.789, "123456.789"),
        (-1.5e-7, "-1.5e-07"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
        (0.1 + 0.2, "0.30000000000000004"),
    ] {
        assert_eq!(spell8(value), text);
    }
}

#[test]
fn reals_turn_to_exponents_earlier() {
    for (value, text) in
        [(1e6_f32, "1e+06"), (1e5, "100000"), (123_456_789.0, "1.2345679e+08"), (0.1, "0.1"), (3.4e38, "3.4e+38")]
    {
        assert_eq!(spell4(value), text);
    }
}

#[test]
fn words_and_bounds_are_read() {
    assert_eq!(parse_float8(" -inf "), Ok(f64::NEG_INFINITY));
    assert!(parse_float8("nan").is_ok_and(f64::is_nan));
    assert_eq!(parse_float8(".5"), Ok(0.5));
    assert_eq!(parse_float8("5."), Ok(5.0));
    assert_eq!(parse_float8("1e400").unwrap_err().message, "\"1e400\" is out of range for type double precision");
    assert_eq!(parse_float8("1e-400").unwrap_err().condition, Condition::NumericValueOutOfRange);
    assert_eq!(parse_float4("1e40").unwrap_err().message, "\"1e40\" is out of range for type real");
    for text in ["", "e5", "1.2.3", "abc", "1x", "."] {
        assert_eq!(parse_float8(text).unwrap_err().condition, Condition::InvalidTextRepresentation, "{text}");
    }
}

proptest! {
    #[test]
    fn doubles_read_back(bits: u64) {
        let value = f64::from_bits(bits);
        let read = parse_float8(&spell8(value)).expect("printed by us");
        prop_assert!(read == value || (read.is_nan() && value.is_nan()));
    }

    #[test]
    fn reals_read_back(bits: u32) {
        let value = f32::from_bits(bits);
        let read = parse_float4(&spell4(value)).expect("printed by us");
        prop_assert!(read == value || (read.is_nan() && value.is_nan()));
    }
}
