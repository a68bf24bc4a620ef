//! Comparison of two answers.

use std::fmt;

use crate::answer::{Answer, Row};

#[cfg(test)]
mod tests;

/// Relative difference up to which numbers are equal, unless both are integers.
const NUMBER_TOLERANCE: f64 = 1e-9;

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Equal,
    /// Equal, but some number is written otherwise.
    EqualNumbers,
    Different(Difference),
}

/// First respect in which two answers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    ColumnCount,
    RowCount,
    AffectedRows,
    RowOrder,
    Values,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ColumnCount => "number of columns",
            Self::RowCount => "number of rows",
            Self::AffectedRows => "number of affected rows",
            Self::RowOrder => "order of rows",
            Self::Values => "values",
        })
    }
}

/// Compares an answer with the expected one; the order of rows counts if `is_ordered`.
pub(crate) fn compare(expected: &Answer, actual: &Answer, is_ordered: bool) -> Verdict {
    if expected.columns.len() != actual.columns.len() {
        return Verdict::Different(Difference::ColumnCount);
    }
    if expected.row_count != actual.row_count {
        return Verdict::Different(Difference::RowCount);
    }
    if expected.affected != actual.affected {
        return Verdict::Different(Difference::AffectedRows);
    }
    let has_all_rows = expected.rows.len() == expected.row_count && actual.rows.len() == actual.row_count;
    if !has_all_rows {
        return Verdict::Equal;
    }
    let as_sent = compare_rows(expected.rows.iter(), actual.rows.iter());
    if is_ordered && as_sent != Verdict::Different(Difference::Values) {
        return as_sent;
    }
    match compare_rows(sorted(&expected.rows).into_iter(), sorted(&actual.rows).into_iter()) {
        Verdict::Different(difference) => Verdict::Different(difference),
        _ if is_ordered => Verdict::Different(Difference::RowOrder),
        equal => equal,
    }
}

fn compare_rows<'a>(expected: impl Iterator<Item = &'a Row>, actual: impl Iterator<Item = &'a Row>) -> Verdict {
    let mut verdict = Verdict::Equal;
    for (expected, actual) in expected.flatten().zip(actual.flatten()) {
        if expected == actual {
            continue;
        }
        let are_equal = matches!((expected, actual), (Some(left), Some(right)) if are_equal_numbers(left, right));
        if !are_equal {
            return Verdict::Different(Difference::Values);
        }
        verdict = Verdict::EqualNumbers;
    }
    verdict
}

/// Sorts rows such that equal numbers of different forms come to the same position.
fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by_cached_key(|row| {
        let forms: Vec<Option<String>> = row.iter().map(|value| value.as_deref().map(sort_form)).collect();
        (forms, *row)
    });
    sorted
}

fn sort_form(text: &str) -> String {
    number(text).map_or_else(|| text.to_owned(), |number| format!("{:.6e}", number + 0.0))
}

fn are_equal_numbers(left: &str, right: &str) -> bool {
    let is_integer = |text: &str| text.trim_start_matches(['-', '+']).chars().all(|c| c.is_ascii_digit());
    match (number(left), number(right)) {
        (Some(_), Some(_)) if is_integer(left) && is_integer(right) => false,
        (Some(left), Some(right)) => (left - right).abs() <= NUMBER_TOLERANCE * left.abs().max(right.abs()),
        _ => false,
    }
}

/// Parses a finite number; words such as `nan` are none.
fn number(text: &str) -> Option<f64> {
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    text.parse().ok().filter(|number: &f64| begins && number.is_finite())
}
