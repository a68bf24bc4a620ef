use super::*;

fn answer(rows: &[&[&str]]) -> Answer {
    let value = |text: &&str| (*text != "NULL").then(|| (*text).to_owned());
    let rows: Vec<Row> = rows.iter().map(|row| row.iter().map(value).collect()).collect();
    let columns = vec!["c".to_owned(); rows.first().map_or(1, Vec::len)];
    Answer { columns, row_count: rows.len(), affected: rows.len() as u64, rows }
}

#[test]
fn order_counts_only_where_the_query_has_one() {
    let (first, second) = (answer(&[&["a"], &["b"]]), answer(&[&["b"], &["a"]]));
    assert_eq!(compare(&first, &second, false), Verdict::Equal);
    assert_eq!(compare(&first, &second, true), Verdict::Different(Difference::RowOrder));
}

#[test]
fn numbers_are_compared_as_numbers_unless_both_are_integers() {
    let one = |text| answer(&[&[text]]);
    assert_eq!(compare(&one("1.50"), &one("1.5"), true), Verdict::EqualNumbers);
    assert_eq!(compare(&one("3"), &one("3.0000000001"), true), Verdict::EqualNumbers);
    assert_eq!(compare(&one("0.0"), &one("-0"), true), Verdict::EqualNumbers);
    for (left, right) in [("10000000000", "10000000001"), ("1.5", "1.6"), ("NaN", "nan"), ("", "0"), ("NULL", "0")] {
        assert_eq!(compare(&one(left), &one(right), true), Verdict::Different(Difference::Values), "{left} {right}");
    }
}

#[test]
fn sorting_brings_equal_numbers_together() {
    let first = answer(&[&["2.50", "x"], &["10", "y"], &["NULL", "z"]]);
    let second = answer(&[&["10.0", "y"], &["NULL", "z"], &["2.5", "x"]]);
    assert_eq!(compare(&first, &second, false), Verdict::EqualNumbers);
}

#[test]
fn shapes_are_compared_first() {
    let (one, two) = (answer(&[&["a"]]), answer(&[&["a"], &["a"]]));
    assert_eq!(compare(&one, &two, false), Verdict::Different(Difference::RowCount));
    assert_eq!(compare(&one, &answer(&[&["a", "b"]]), false), Verdict::Different(Difference::ColumnCount));
    let more = Answer { affected: 3, ..one.clone() };
    assert_eq!(compare(&one, &more, false), Verdict::Different(Difference::AffectedRows));
}

#[test]
fn answers_that_are_cut_are_compared_by_their_counts() {
    let cut = |text| Answer { row_count: 9, ..answer(&[&[text]]) };
    assert_eq!(compare(&cut("a"), &cut("b"), true), Verdict::Equal);
}
