//! Range of values that can pass a test, for a quick check before the test itself.

use std::cmp::Ordering;

use crate::{Datum, Op, Test};

/// Range that contains the value of every row that passes a test; a missing end is unbounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reach<'a> {
    pub(super) from: Option<End<'a>>,
    pub(super) to: Option<End<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
/// End of a range.
pub(super) enum End<'a> {
    /// The value itself, included.
    At(&'a Datum),
    /// Start of the texts with this prefix.
    From(&'a [u8]),
    /// End of the texts with this prefix.
    After(&'a [u8]),
}

impl<'a> Reach<'a> {
    /// Returns the range of a test; `None` if rows may pass with any value or NULL.
    pub(super) fn of(test: &'a Test) -> Option<Self> {
        let reach = |from, to| Some(Self { from, to });
        match test {
            Test::IsNull | Test::IsNotNull => None,
            Test::Compare(op, value) => match op {
                Op::Eq => reach(Some(End::At(value)), Some(End::At(value))),
                Op::Less | Op::LessEq => reach(None, Some(End::At(value))),
                Op::Greater | Op::GreaterEq => reach(Some(End::At(value)), None),
                Op::NotEq => None,
            },
            Test::Between(low, high) => reach(Some(End::At(low)), Some(End::At(high))),
            Test::In(values) => {
                let first = values.first()?;
                // Values of several variants have no range.
                let is_alike = values.iter().all(|value| value.compare(first).is_some());
                let least = values.iter().reduce(|one, other| outermost(one, other, Ordering::Less))?;
                let greatest = values.iter().reduce(|one, other| outermost(one, other, Ordering::Greater))?;
                if is_alike { reach(Some(End::At(least)), Some(End::At(greatest))) } else { None }
            }
            Test::Like { is_negated: true, .. } => None,
            Test::Like { pattern, .. } => reach(Some(End::From(&pattern.prefix)), Some(End::After(&pattern.prefix))),
            // Any of the ranges may exclude a shard, so the first known end of each side is used.
            Test::All(tests) => tests
                .iter()
                .filter_map(Self::of)
                .reduce(|one, other| Self { from: one.from.or(other.from), to: one.to.or(other.to) }),
            Test::Any(tests) => {
                let mut reaches = tests.iter().map(Self::of);
                let first = reaches.next()??;
                reaches.try_fold(first, |one, other| {
                    let other = other?;
                    Some(Self {
                        from: wider(one.from, other.from, Ordering::Less),
                        to: wider(one.to, other.to, Ordering::Greater),
                    })
                })
            }
        }
    }
}

/// Returns the outer of two ends; `None` if they do not compare.
fn wider<'a>(one: Option<End<'a>>, other: Option<End<'a>>, further: Ordering) -> Option<End<'a>> {
    match (one?, other?) {
        (End::At(one), End::At(other)) => {
            one.compare(other)?;
            Some(End::At(outermost(one, other, further)))
        }
        (one, other) => (one == other).then_some(one),
    }
}

/// Returns the value further in the given direction.
fn outermost<'a>(one: &'a Datum, other: &'a Datum, further: Ordering) -> &'a Datum {
    if other.compare(one) == Some(further) { other } else { one }
}
