use super::*;

#[test]
fn result_types_follow_the_table() {
    let money = Digits::new(12, 2);
    assert_eq!(money.sum_of(Digits::new(10, 0)), Digits::new(13, 2));
    assert_eq!(money.product_with(money), Digits::new(24, 4));
    assert_eq!(money.quotient_by(money), Digits::new(38, 16));
    assert_eq!(Digits::new(38, 20).quotient_by(money).scale, 20);
    assert_eq!(money.remainder_by(Digits::new(10, 4)), Digits::new(14, 4));
    assert_eq!(money.sum(), Digits::new(38, 2));
    assert_eq!(money.average(), Digits::new(38, 16));
    assert_eq!(Digits::new(38, 30).product_with(Digits::new(38, 30)), Digits::new(38, 38));
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
