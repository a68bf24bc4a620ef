use proptest::prelude::*;

use super::*;

fn spell(value: i128, scale: u8) -> String {
    let mut text = String::new();
    format_numeric(value, scale, &mut text);
    text
}

#[test]
fn values_are_rounded_half_away_from_zero() {
    for (text, precision, scale, value) in [
        ("1.005", 10, 2, 101),
        ("-1.005", 10, 2, -101),
        ("1.004999", 10, 2, 100),
        ("2.5", 5, 0, 3),
        ("-2.5", 5, 0, -3),
        ("0.5", 1, 0, 1),
        ("0.49", 1, 0, 0),
        ("1e3", 10, 2, 100_000),
        ("1.5e-2", 10, 3, 15),
        (" +12.50 ", 10, 2, 1_250),
        (".5", 10, 1, 5),
        ("5.", 10, 1, 50),
        ("0.004", 10, 2, 0),
        ("0.05", 10, 1, 1),
        ("0000000000000000000000000000000000000000000000001", 10, 0, 1),
        ("99999999999999999999999999999999999999", 38, 0, 99_999_999_999_999_999_999_999_999_999_999_999_999),
        ("1e-1000", 10, 2, 0),
    ] {
        assert_eq!(parse_numeric(text, precision, scale), Ok(value), "{text}");
    }
}

#[test]
fn too_many_digits_are_refused() {
    let error = parse_numeric("100", 4, 2).unwrap_err();
    assert_eq!(error.condition, Condition::NumericValueOutOfRange);
    assert_eq!(error.message, "numeric field overflow");
    assert_eq!(
        error.detail.unwrap(),
        "A field with precision 4, scale 2 must round to an absolute value less than 10^2."
    );
    assert!(parse_numeric("99.995", 4, 2).is_err(), "rounding can overflow too");
    assert!(parse_numeric("1e100", 38, 0).is_err());
    assert!(parse_numeric("1e999999999999", 38, 0).is_err());
}

#[test]
fn bare_numeric_never_rounds() {
    assert_eq!(parse_numeric("1.0000000001", 38, 10), Ok(10_000_000_001));
    assert_eq!(parse_numeric("1.00000000010", 38, 10), Ok(10_000_000_001));
    assert_eq!(parse_numeric("1.00000000001", 38, 10).unwrap_err().condition, Condition::NumericValueOutOfRange);
}

#[test]
fn what_is_no_number_is_refused() {
    for text in ["", "-", ".", "1.2.3", "1e", "e1", "1 2", "0x1", "--1"] {
        assert_eq!(parse_numeric(text, 10, 2).unwrap_err().condition, Condition::InvalidTextRepresentation, "{text}");
    }
    assert_eq!(parse_numeric("NaN", 10, 2).unwrap_err().condition, Condition::FeatureNotSupported);
}

#[test]
fn exact_reading_keeps_every_digit() {
    assert_eq!(parse_numeric_exact("1.50"), Ok((150, 3, 2)));
    assert_eq!(parse_numeric_exact("0.001"), Ok((1, 3, 3)));
    assert_eq!(parse_numeric_exact("1e2"), Ok((100, 3, 0)));
    assert_eq!(parse_numeric_exact("0"), Ok((0, 1, 0)));
}

#[test]
fn a_number_of_any_digits_has_a_place_among_those_of_a_scale() {
    use NumericPosition::{Above, Below, Between, EqualTo};
    let most = 9_999;
    let cases = [
        ("5.12", EqualTo(512)),
        ("5.1200", EqualTo(512)),
        ("5.125", Between(512)),
        ("-5.125", Between(-513)),
        ("-5.12", EqualTo(-512)),
        ("0", EqualTo(0)),
        ("-0.001", Between(-1)),
        ("0.001", Between(0)),
        ("1e-400", Between(0)),
        ("-1e-400", Between(-1)),
        ("99.99", EqualTo(9_999)),
        ("99.991", Above),
        ("100", Above),
        ("1e33", Above),
        ("1e400", Above),
        ("-99.991", Below),
        ("-1e400", Below),
        ("0e400", EqualTo(0)),
        ("0.00000000000000000000000000000000000000000000000000000001", Between(0)),
        ("12.340000000000000000000000000000000000000000000000000000", EqualTo(1_234)),
        ("12.340000000000000000000000000000000000000000000000000001", Between(1_234)),
        ("0000000000000000000000000000000000000000000000000000012.3", EqualTo(1_230)),
        ("1.2e1", EqualTo(1_200)),
        (".5", EqualTo(50)),
    ];
    for (text, position) in cases {
        assert_eq!(numeric_position(text, 2, -most, most), Ok(position), "{text}");
    }
    let all = numeric::power_of_ten(38) - 1;
    assert_eq!(numeric_position(&"9".repeat(38), 0, -all, all), Ok(EqualTo(all)));
    assert_eq!(numeric_position(&"9".repeat(39), 0, -all, all), Ok(Above));
    assert_eq!(numeric_position("40000", 0, i128::from(i16::MIN), i128::from(i16::MAX)), Ok(Above));
    assert_eq!(numeric_position("x", 2, -most, most).unwrap_err().condition, Condition::InvalidTextRepresentation);
}

#[test]
fn every_digit_of_the_scale_is_printed() {
    for (value, scale, text) in [(150, 2, "1.50"), (-5, 2, "-0.05"), (0, 0, "0"), (0, 3, "0.000"), (-12, 0, "-12")] {
        assert_eq!(spell(value, scale), text);
    }
    assert_eq!(spell(10_i128.pow(38) - 1, 38), format!("0.{}", "9".repeat(38)));
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(digits in 0_u8..=38, seed: i128, scale in 0_u8..=38) {
        let value = seed % numeric::power_of_ten(digits).max(1);
        let precision = 38;
        let scale = if scale == 10 { 9 } else { scale };
        prop_assert_eq!(parse_numeric(&spell(value, scale), precision, scale), Ok(value));
    }
}
