//! Evaluates predicates on blocks. Selected rows are filtered again above the scan, so a test that a block cannot
//! evaluate keeps all rows.

use blocks::{Comparison, Condition, RowSet, TextCondition};

use super::block::ColumnBlock;
use super::int128_conversion::uuid_to_i128;
use crate::{CompareOp, Datum, Result, Test};

impl ColumnBlock {
    /// Returns true if the block can evaluate the test.
    #[must_use]
    pub fn can_evaluate(&self, test: &Test) -> bool {
        match (test, self) {
            (Test::All(tests) | Test::Any(tests), _) => tests.iter().all(|test| self.can_evaluate(test)),
            (test, Self::Numbers(block)) if block.header().kind.is_float() => condition(test, float).is_some(),
            (test, Self::Numbers(_)) => condition(test, integer).is_some(),
            (test, Self::Texts(_) | Self::Dictionary { .. }) => text_condition(test).is_some(),
            (test, Self::Bytes(_)) => bytes_condition(test).is_some(),
            (test, Self::Uncached(page)) if page.is_text() => text_condition(test).is_some(),
            (test, Self::Uncached(_)) => condition(test, integer).is_some(),
            (_, Self::Arrays(_)) => false,
        }
    }

    /// Restricts `rows` to those that pass; returns false, with all rows left, if the block cannot evaluate the test.
    pub(super) fn filter(&self, test: &Test, rows: &mut RowSet) -> Result<bool> {
        match test {
            Test::All(tests) => {
                let mut is_told = true;
                for test in tests {
                    is_told &= self.filter(test, rows)?;
                }
                Ok(is_told)
            }
            Test::Any(tests) => {
                let mut any = RowSet::none(rows.rows());
                for test in tests {
                    let mut passing = rows.clone();
                    if !self.filter(test, &mut passing)? {
                        return Ok(false);
                    }
                    any.union(&passing);
                }
                *rows = any;
                Ok(true)
            }
            test => match self {
                Self::Numbers(block) if block.header().kind.is_float() => {
                    let Some(condition) = condition(test, float) else { return Ok(false) };
                    block.filter_floats(&condition, rows)?;
                    Ok(true)
                }
                Self::Numbers(block) => {
                    let Some(condition) = condition(test, integer) else { return Ok(false) };
                    block.filter_integers(&condition, rows)?;
                    Ok(true)
                }
                Self::Texts(block) => {
                    let Some(condition) = text_condition(test) else { return Ok(false) };
                    block.filter_text(&condition, rows)?;
                    Ok(true)
                }
                Self::Bytes(block) => {
                    let Some(condition) = bytes_condition(test) else { return Ok(false) };
                    block.filter_text(&condition, rows)?;
                    Ok(true)
                }
                Self::Dictionary { codes, strings, .. } => {
                    match text_condition(test) {
                        Some(TextCondition::IsNull) => codes.filter_nulls(true, rows),
                        Some(TextCondition::IsNotNull) => codes.filter_nulls(false, rows),
                        Some(condition) => codes.filter_codes(&strings.matching(&condition), rows)?,
                        None => return Ok(false),
                    }
                    Ok(true)
                }
                Self::Uncached(page) if page.is_text() => {
                    let Some(condition) = text_condition(test) else { return Ok(false) };
                    page.filter_strings(&condition, rows);
                    Ok(true)
                }
                Self::Uncached(page) => {
                    let Some(condition) = condition(test, integer) else { return Ok(false) };
                    page.filter_numbers(&condition, rows);
                    Ok(true)
                }
                Self::Arrays(_) => Ok(false),
            },
        }
    }
}

/// Translates a test into a condition of blocks; `None` if it has no such form or a constant is of another type.
fn condition<T>(test: &Test, value: impl Fn(&Datum) -> Option<T>) -> Option<Condition<T>> {
    Some(match test {
        Test::Compare(op, datum) => Condition::Compare(comparison(*op), value(datum)?),
        Test::In(data) => Condition::In(data.iter().map(value).collect::<Option<_>>()?),
        Test::Between(low, high) => Condition::Between(value(low)?, value(high)?),
        Test::IsNull => Condition::IsNull,
        Test::IsNotNull => Condition::IsNotNull,
        Test::Like { .. } | Test::All(_) | Test::Any(_) => return None,
    })
}

/// Translates a test of strings.
fn text_condition(test: &Test) -> Option<TextCondition> {
    if let Test::Like { pattern, is_negated } = test {
        return Some(TextCondition::Like { pattern: pattern.clone(), is_negated: *is_negated });
    }
    condition(test, text).map(into_text_condition)
}

/// Translates a test of byte strings. LIKE is excluded, because it matches characters, which may be several bytes long.
fn bytes_condition(test: &Test) -> Option<TextCondition> {
    condition(test, bytes).map(into_text_condition)
}

/// Converts a condition on strings into a text condition.
fn into_text_condition(condition: Condition<Vec<u8>>) -> TextCondition {
    match condition {
        Condition::Compare(comparison, value) => TextCondition::Compare(comparison, value),
        Condition::In(values) => TextCondition::In(values),
        Condition::Between(low, high) => TextCondition::Between(low, high),
        Condition::IsNull => TextCondition::IsNull,
        Condition::IsNotNull => TextCondition::IsNotNull,
    }
}

fn comparison(op: CompareOp) -> Comparison {
    match op {
        CompareOp::Eq => Comparison::Equal,
        CompareOp::NotEq => Comparison::NotEqual,
        CompareOp::Less => Comparison::Less,
        CompareOp::LessEq => Comparison::LessOrEqual,
        CompareOp::Greater => Comparison::Greater,
        CompareOp::GreaterEq => Comparison::GreaterOrEqual,
    }
}

fn integer(datum: &Datum) -> Option<i128> {
    match datum {
        Datum::Bool(value) => Some(i128::from(*value)),
        Datum::Int(value) => Some(i128::from(*value)),
        Datum::Decimal(value) => Some(*value),
        // UUIDs are the only byte strings stored as numbers.
        Datum::Bytes(bytes) if bytes.len() == size_of::<i128>() => Some(uuid_to_i128(bytes)),
        Datum::Float(_) | Datum::Text(_) | Datum::Bytes(_) => None,
    }
}

fn float(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Float(value) => Some(*value),
        _ => None,
    }
}

fn bytes(datum: &Datum) -> Option<Vec<u8>> {
    match datum {
        Datum::Bytes(value) => Some(value.clone()),
        _ => None,
    }
}

fn text(datum: &Datum) -> Option<Vec<u8>> {
    match datum {
        Datum::Text(value) => Some(value.clone().into_bytes()),
        _ => None,
    }
}
