use super::*;

#[test]
fn rounding_leaves_room_for_a_carry() {
    assert_eq!(rounded_to_integer_precision(&SqlType::Numeric { precision: 4, scale: 2 }), NumericPrecision::new(3, 0));
    assert_eq!(precision_plus_one_digit(&SqlType::Numeric { precision: 4, scale: 2 }), NumericPrecision::new(5, 2));
}

#[test]
fn logarithms_of_what_has_none_are_refused() {
    assert_eq!(logarithm(0.0, f64::ln).unwrap_err().condition, Condition::InvalidArgumentForLogarithm);
    assert_eq!(sqrt(-1.0).unwrap_err().condition, Condition::InvalidArgumentForPower);
}

#[test]
fn divisors_and_multiples_are_found() {
    assert_eq!(greatest_divisor(12, 18), 6);
    assert_eq!(least_multiple(4, 6), Some(12));
    assert_eq!(least_multiple(u64::MAX, u64::MAX - 1), None);
}
