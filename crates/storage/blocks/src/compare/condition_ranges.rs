//! Lowering of conditions to ranges of keys.

use crate::float_encoding::{f32_to_key, f64_to_key, key_to_f32};
use crate::{Comparison, Condition, KeyRanges, ValueKind};

/// Returns the integers for which a condition is true, as inclusive ranges.
pub(super) fn int128_ranges(condition: &Condition<i128>) -> Vec<(i128, i128)> {
    let (min, max) = (i128::MIN, i128::MAX);
    let below = |value: i128| value.checked_sub(1).map(|high| (min, high));
    let above = |value: i128| value.checked_add(1).map(|low| (low, max));
    let ranges = match condition {
        Condition::Compare(Comparison::Less, value) => vec![below(*value)],
        Condition::Compare(Comparison::LessOrEqual, value) => vec![Some((min, *value))],
        Condition::Compare(Comparison::Equal, value) => vec![Some((*value, *value))],
        Condition::Compare(Comparison::NotEqual, value) => vec![below(*value), above(*value)],
        Condition::Compare(Comparison::GreaterOrEqual, value) => vec![Some((*value, max))],
        Condition::Compare(Comparison::Greater, value) => vec![above(*value)],
        Condition::Between(low, high) => vec![Some((*low, *high))],
        Condition::In(values) => values.iter().map(|value| Some((*value, *value))).collect(),
        Condition::IsNull => vec![],
        Condition::IsNotNull => vec![Some((min, max))],
    };
    ranges.into_iter().flatten().collect()
}

/// Returns the keys, integers minus the block's offset, for which a condition is true.
pub(super) fn integer_ranges(condition: &Condition<i128>, offset: i128) -> KeyRanges {
    let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let keys = int128_ranges(condition)
        .into_iter()
        .map(|(low, high)| (low.saturating_sub(offset), high.saturating_sub(offset)));
    let within = keys.filter(|(low, high)| *low <= max && min <= *high);
    KeyRanges::new(within.map(|(low, high)| (low.max(min) as i64, high.min(max) as i64)).collect())
}

/// Returns the keys of floats for which a condition is true.
pub(super) fn float_ranges(condition: &Condition<f64>, kind: ValueKind) -> KeyRanges {
    // `first(c)..=last(c)` are the keys of all numbers equal to `c`: both zeros for zero, and an empty range if no
    // single is equal to the double `c`.
    let first = |value: f64| {
        if kind == ValueKind::Float32 { least_f32_key(value) } else { least_equal_key(f64_to_key(value)) }
    };
    let last = |value: f64| {
        if kind == ValueKind::Float32 { greatest_f32_key(value) } else { greatest_equal_key(f64_to_key(value)) }
    };
    let (min, max) = (i64::MIN, i64::MAX);
    let ranges = match condition {
        Condition::Compare(Comparison::Less, value) => vec![(min, first(*value) - 1)],
        Condition::Compare(Comparison::LessOrEqual, value) => vec![(min, last(*value))],
        Condition::Compare(Comparison::Equal, value) => vec![(first(*value), last(*value))],
        Condition::Compare(Comparison::NotEqual, value) => vec![(min, first(*value) - 1), (last(*value) + 1, max)],
        Condition::Compare(Comparison::GreaterOrEqual, value) => vec![(first(*value), max)],
        Condition::Compare(Comparison::Greater, value) => vec![(last(*value) + 1, max)],
        Condition::Between(low, high) => vec![(first(*low), last(*high))],
        Condition::In(values) => values.iter().map(|value| (first(*value), last(*value))).collect(),
        Condition::IsNull => vec![],
        Condition::IsNotNull => vec![(min, max)],
    };
    KeyRanges::new(ranges)
}

/// Returns the key, but that of -0 for 0.
fn least_equal_key(key: i64) -> i64 {
    if key == 0 { -1 } else { key }
}

/// Returns the key, but that of 0 for -0.
fn greatest_equal_key(key: i64) -> i64 {
    if key == -1 { 0 } else { key }
}

/// Returns the key of the least single that is not less than a double.
fn least_f32_key(value: f64) -> i64 {
    let key = f32_to_key(value as f32);
    if f64_to_key(key_to_f32(key).into()) < least_equal_key(f64_to_key(value)) {
        least_equal_key(key + 1)
    } else {
        least_equal_key(key)
    }
}

/// Returns the key of the greatest single that is not greater than a double.
fn greatest_f32_key(value: f64) -> i64 {
    let key = f32_to_key(value as f32);
    if greatest_equal_key(f64_to_key(value)) < f64_to_key(key_to_f32(key).into()) {
        greatest_equal_key(key - 1)
    } else {
        greatest_equal_key(key)
    }
}

/// Whether a condition is true for a value (`None` is NULL).
pub(super) fn condition_matches<T: Ord>(condition: &Condition<T>, value: Option<&T>) -> bool {
    let Some(value) = value else { return matches!(condition, Condition::IsNull) };
    match condition {
        Condition::Compare(comparison, constant) => comparison.holds(value.cmp(constant)),
        Condition::Between(low, high) => low <= value && value <= high,
        Condition::In(values) => values.contains(value),
        Condition::IsNull => false,
        Condition::IsNotNull => true,
    }
}
