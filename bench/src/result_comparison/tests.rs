use super::{Row, compare, compare_exactly, read_reference};

fn rows(text: &str) -> Vec<Row> {
    read_reference(&format!("header\n{text}"))
}

#[test]
fn order_and_the_last_digits_of_an_average_do_not_matter() {
    assert_eq!(compare(&rows("a|1.234567\nb|2\n"), &rows("b|2.00\na|1.234568\n")), Ok(()));
}

#[test]
fn a_wrong_digit_a_missing_row_and_a_wrong_name_do() {
    assert!(compare(&rows("a|1.2345\n"), &rows("a|1.2355\n")).is_err());
    assert!(compare(&rows("a|1\n"), &rows("a|1\na|1\n")).is_err());
    assert!(compare(&rows("a|1\n"), &rows("b|1\n")).is_err());
    assert!(compare(&rows("|1\n"), &rows("b|1\n")).is_err());
}

#[test]
fn exact_comparison_forgives_only_trailing_zeros() {
    assert_eq!(compare_exactly(&rows("a|1.50\n"), &rows("a|1.5000\n")), Ok(()));
    assert!(compare_exactly(&rows("a|1.500001\n"), &rows("a|1.5\n")).is_err());
}

#[test]
fn a_quoted_field_keeps_its_bars_and_quotes() {
    assert_eq!(rows("\"a|b\"\"c\"|2\n"), vec![vec![Some("a|b\"c".to_owned()), Some("2".to_owned())]]);
}
