//! Conditions to ranges of keys.

use crate::{Comparison, Condition, Ranges};

/// The keys, each an integer less the block's offset, of which a condition is true.
pub(super) fn integer_ranges(condition: &Condition<i128>, offset: i128) -> Ranges {
    let range = |low: Option<i128>, high: Option<i128>| -> Option<(i64, i64)> {
        let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
        let low = low.map_or(min, |low| low.saturating_sub(offset));
        let high = high.map_or(max, |high| high.saturating_sub(offset));
        (low <= max && min <= high).then(|| (low.max(min) as i64, high.min(max) as i64))
    };
    let below = |value: i128| value.checked_sub(1).and_then(|high| range(None, Some(high)));
    let above = |value: i128| value.checked_add(1).and_then(|low| range(Some(low), None));
    let ranges = match condition {
        Condition::Compare(Comparison::Less, value) => vec![below(*value)],
        Condition::Compare(Comparison::LessOrEqual, value) => vec![range(None, Some(*value))],
        Condition::Compare(Comparison::Equal, value) => vec![range(Some(*value), Some(*value))],
        Condition::Compare(Comparison::NotEqual, value) => vec![below(*value), above(*value)],
        Condition::Compare(Comparison::GreaterOrEqual, value) => vec![range(Some(*value), None)],
        Condition::Compare(Comparison::Greater, value) => vec![above(*value)],
        Condition::Between(low, high) => vec![range(Some(*low), Some(*high))],
        Condition::In(values) => values.iter().map(|value| range(Some(*value), Some(*value))).collect(),
        Condition::IsNull => vec![],
        Condition::IsNotNull => vec![Some((i64::MIN, i64::MAX))],
    };
    Ranges::new(ranges.into_iter().flatten().collect())
}

/// Whether a condition is true of a value.
pub(super) fn holds<T: Ord>(condition: &Condition<T>, value: Option<&T>) -> bool {
    let Some(value) = value else { return matches!(condition, Condition::IsNull) };
    match condition {
        Condition::Compare(comparison, constant) => comparison.holds(value.cmp(constant)),
        Condition::Between(low, high) => low <= value && value <= high,
        Condition::In(values) => values.contains(value),
        Condition::IsNull => false,
        Condition::IsNotNull => true,
    }
}
