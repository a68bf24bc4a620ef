use super::*;

#[test]
fn result_types_follow_the_table() {
    let money = NumericPrecision::new(12, 2);
    assert_eq!(money.addition_result(NumericPrecision::new(10, 0)), NumericPrecision::new(13, 2));
    assert_eq!(money.multiplication_result(money), NumericPrecision::new(24, 4));
    assert_eq!(money.division_result(money), NumericPrecision::new(38, 16));
    assert_eq!(NumericPrecision::new(38, 20).division_result(money).scale, 20);
    assert_eq!(money.remainder_result(NumericPrecision::new(10, 4)), NumericPrecision::new(14, 4));
    assert_eq!(money.sum_result(), NumericPrecision::new(38, 2));
    assert_eq!(money.average_result(), NumericPrecision::new(38, 16));
    assert_eq!(
        NumericPrecision::new(38, 30).multiplication_result(NumericPrecision::new(38, 30)),
        NumericPrecision::new(38, 38)
    );
}

#[test]
fn division_rounds_half_away_from_zero() {
    for (value, divisor, expected) in [(5, 2, 3), (-5, 2, -3), (5, -2, -3), (4, 3, 1), (-4, 3, -1), (0, 7, 0)] {
        assert_eq!(divide_rounding(value, divisor), expected, "{value}/{divisor}");
    }
    assert_eq!(rescale(12_345, 2, 1), Some(1_235));
    assert_eq!(rescale(12_345, 2, 4), Some(1_234_500));
    assert_eq!(rescale(i128::MAX, 0, 1), None);
}

#[test]
fn digits_are_counted() {
    for (value, count) in [(0, 0), (9, 1), (10, 2), (-999, 3)] {
        assert_eq!(digit_count(value), count);
    }
}
