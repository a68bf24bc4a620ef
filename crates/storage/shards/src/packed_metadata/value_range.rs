//! Range of values that can pass a test, for a quick check before the test itself.

use std::cmp::Ordering;

use crate::{CompareOp, Datum, Test};

/// Range that contains the value of every row that passes a test; a missing end is unbounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ValueRange<'a> {
    pub(super) from: Option<RangeEnd<'a>>,
    pub(super) to: Option<RangeEnd<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
/// End of a range.
pub(super) enum RangeEnd<'a> {
    /// The value itself, included.
    Value(&'a Datum),
    /// Start of the texts with this prefix.
    PrefixStart(&'a [u8]),
    /// End of the texts with this prefix.
    PrefixEnd(&'a [u8]),
}

impl<'a> ValueRange<'a> {
    /// Returns the range of a test; `None` if rows may pass with any value or NULL.
    pub(super) fn from_test(test: &'a Test) -> Option<Self> {
        let reach = |from, to| Some(Self { from, to });
        match test {
            Test::IsNull | Test::IsNotNull => None,
            Test::Compare(op, value) => match op {
                CompareOp::Eq => reach(Some(RangeEnd::Value(value)), Some(RangeEnd::Value(value))),
                CompareOp::Less | CompareOp::LessEq => reach(None, Some(RangeEnd::Value(value))),
                CompareOp::Greater | CompareOp::GreaterEq => reach(Some(RangeEnd::Value(value)), None),
                CompareOp::NotEq => None,
            },
            Test::Between(low, high) => reach(Some(RangeEnd::Value(low)), Some(RangeEnd::Value(high))),
            Test::In(values) => {
                let first = values.first()?;
                // Values of several variants have no range.
                let is_alike = values.iter().all(|value| value.compare(first).is_some());
                let least = values.iter().reduce(|one, other| farther_value(one, other, Ordering::Less))?;
                let greatest = values.iter().reduce(|one, other| farther_value(one, other, Ordering::Greater))?;
                if is_alike { reach(Some(RangeEnd::Value(least)), Some(RangeEnd::Value(greatest))) } else { None }
            }
            Test::Like { is_negated: true, .. } => None,
            Test::Like { pattern, .. } => {
                reach(Some(RangeEnd::PrefixStart(&pattern.prefix)), Some(RangeEnd::PrefixEnd(&pattern.prefix)))
            }
            // Any of the ranges may exclude a shard, so the first known end of each side is used.
            Test::All(tests) => tests
                .iter()
                .filter_map(Self::from_test)
                .reduce(|one, other| Self { from: one.from.or(other.from), to: one.to.or(other.to) }),
            Test::Any(tests) => {
                let mut reaches = tests.iter().map(Self::from_test);
                let first = reaches.next()??;
                reaches.try_fold(first, |one, other| {
                    let other = other?;
                    Some(Self {
                        from: farther_end(one.from, other.from, Ordering::Less),
                        to: farther_end(one.to, other.to, Ordering::Greater),
                    })
                })
            }
        }
    }
}

/// Returns the outer of two ends; `None` if they do not compare.
fn farther_end<'a>(one: Option<RangeEnd<'a>>, other: Option<RangeEnd<'a>>, further: Ordering) -> Option<RangeEnd<'a>> {
    match (one?, other?) {
        (RangeEnd::Value(one), RangeEnd::Value(other)) => {
            one.compare(other)?;
            Some(RangeEnd::Value(farther_value(one, other, further)))
        }
        (one, other) => (one == other).then_some(one),
    }
}

/// Returns the value further in the given direction.
fn farther_value<'a>(one: &'a Datum, other: &'a Datum, further: Ordering) -> &'a Datum {
    if other.compare(one) == Some(further) { other } else { one }
}
