//! Compares query results as multisets of rows: in any order, with numbers equal to five significant digits.

use std::cmp::Ordering;

#[cfg(test)]
mod tests;

/// A row as text, `None` for NULL.
pub type Row = Vec<Option<String>>;

/// Significant digits that must agree: engines differ in the last digits of averages of decimals.
const SIGNIFICANT_DIGITS: i32 = 5;

/// Compares two results and returns the first difference as an error text.
///
/// Both sides are sorted first, so that ties in ORDER BY do not matter.
pub fn compare(expected: &[Row], found: &[Row]) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} rows expected, {} found", expected.len(), found.len()));
    }
    let (expected, found) = (sort_rows(expected), sort_rows(found));
    for (expected, found) in expected.iter().zip(&found) {
        let same = expected.len() == found.len() && expected.iter().zip(found.iter()).all(|(a, b)| same_value(a, b));
        if !same {
            return Err(format!("expected {expected:?}, found {found:?}"));
        }
    }
    Ok(())
}

/// Compares two results exactly, as text without the trailing zeros of numbers.
///
/// For columns that are neither averages nor quotients. The numbers of rows are not compared.
pub fn compare_exactly(expected: &[Row], found: &[Row]) -> Result<(), String> {
    let exact = |rows: &[Row]| {
        let mut rows: Vec<Row> =
            rows.iter().map(|row| row.iter().map(|value| normalize_number(value.as_deref())).collect()).collect();
        rows.sort();
        rows
    };
    match exact(expected).iter().zip(&exact(found)).find(|(a, b)| a != b) {
        Some((a, b)) => Err(format!("expected {a:?}, found {b:?}")),
        None => Ok(()),
    }
}

/// Parses a reference answer: `|`-separated fields under a header line, an empty field for NULL.
#[must_use]
pub fn read_reference(file: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in parse_records(file).skip(1) {
        rows.push(line);
    }
    rows
}

/// Splits a reference answer into records; a field that holds `|`, a quote or a line break is quoted.
fn parse_records(file: &str) -> impl Iterator<Item = Row> {
    let mut characters = file.chars().peekable();
    std::iter::from_fn(move || {
        characters.peek()?;
        let mut row = Row::new();
        let mut field = String::new();
        let mut quoted = false;
        let mut in_quotes = false;
        let mut close = |field: &mut String, quoted: &mut bool| {
            let text = std::mem::take(field);
            row.push((*quoted || !text.is_empty()).then_some(text));
            *quoted = false;
        };
        while let Some(character) = characters.next() {
            match character {
                '"' if in_quotes && characters.peek() == Some(&'"') => {
                    characters.next();
                    field.push('"');
                }
                '"' if in_quotes => in_quotes = false,
                '"' if field.is_empty() => (in_quotes, quoted) = (true, true),
                '|' if !in_quotes => close(&mut field, &mut quoted),
                '\n' if !in_quotes => break,
                '\r' if !in_quotes => {}
                other => field.push(other),
            }
        }
        close(&mut field, &mut quoted);
        Some(row)
    })
}

fn sort_rows(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| compare_rows(a, b));
    rows
}

fn compare_rows(a: &Row, b: &Row) -> Ordering {
    // Sort by exact values first: rounded numbers must not decide the order where other columns can.
    let key = |row: &Row| -> Vec<Option<String>> {
        row.iter()
            .map(|value| value.clone().filter(|text| text.parse::<f64>().is_err() || !text.contains('.')))
            .collect()
    };
    key(a).cmp(&key(b)).then_with(|| {
        let numbers = a.iter().zip(b).map(|(a, b)| (parse_number(a.as_deref()), parse_number(b.as_deref())));
        numbers
            .map(|(a, b)| a.partial_cmp(&b).unwrap_or(Ordering::Equal))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}

fn same_value(a: &Option<String>, b: &Option<String>) -> bool {
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a.trim_end(), b.trim_end()),
        // Reference answers do not distinguish NULL from an empty string.
        (None, other) | (other, None) => return other.as_deref().unwrap_or("").is_empty(),
    };
    if a == b {
        return true;
    }
    let (Ok(a), Ok(b)) = (a.parse::<f64>(), b.parse::<f64>()) else { return false };
    let scale = a.abs().max(b.abs());
    (a - b).abs() <= scale * 0.5 * 10f64.powi(1 - SIGNIFICANT_DIGITS)
}

fn parse_number(value: Option<&str>) -> Option<f64> {
    value?.parse().ok()
}

fn normalize_number(value: Option<&str>) -> Option<String> {
    let text = value?.trim_end();
    if text.is_empty() {
        return None;
    }
    let plain_number =
        text.contains('.') && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit() || b == b'.');
    Some(if plain_number { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() })
}
