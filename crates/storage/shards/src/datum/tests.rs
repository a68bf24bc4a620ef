use super::*;

#[test]
fn nan_is_the_greatest_float_and_zeros_are_equal() {
    assert!(Datum::Float(f64::NAN) > Datum::Float(f64::INFINITY));
    assert_eq!(Datum::Float(f64::NAN), Datum::Float(f64::NAN));
    assert_eq!(Datum::Float(-0.0), Datum::Float(0.0));
}

#[test]
fn different_variants_do_not_compare() {
    assert_eq!(Datum::Int(1).compare(&Datum::Decimal(1)), None);
}

#[test]
fn bounds_of_long_text_enclose_it_and_are_short() {
    let longest_char = "\u{10ffff}";
    for text in [
        "x".repeat(65),
        format!("{}é", "y".repeat(63)),
        "é".repeat(40),
        format!("{}\u{d7ff}{}", "a".repeat(61), "b".repeat(9)),
        format!("a{}", longest_char.repeat(30)),
    ] {
        let lower = text_lower_bound(&text);
        let upper = text_upper_bound(&text).expect("these have an upper bound");
        assert!(lower <= text.as_str() && text.as_str() <= upper.as_str(), "{lower:?} {text:?} {upper:?}");
        assert!(lower.len() <= BOUND_BYTES_MAX && upper.len() <= BOUND_BYTES_MAX);
    }
    assert_eq!(text_upper_bound(&longest_char.repeat(30)), None);
}

#[test]
fn bounds_of_long_bytes_enclose_them() {
    let mut bytes = vec![7; 70];
    bytes[60..].fill(u8::MAX);
    let upper = bytes_upper_bound(&bytes).expect("the sevens can grow");
    assert!(bytes_lower_bound(&bytes) <= bytes.as_slice() && bytes <= upper);
    assert_eq!(bytes_upper_bound(&[u8::MAX; 70]), None);
}
