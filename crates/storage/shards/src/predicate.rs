//! Filter conjuncts that statistics can evaluate. They only skip rows that cannot match: remaining rows are filtered
//! again above the scan, and conjuncts without such a form are left out.

use std::cmp::Ordering;

use blocks::LikePattern;
use serde::{Deserialize, Serialize};
use types::ColumnId;

use crate::{ColumnStats, Datum};

#[cfg(test)]
mod tests;

/// Test on one column; a list of predicates is a conjunction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicate {
    pub column: ColumnId,
    pub test: Test,
}

/// Test of a value. NULL passes `IsNull` only, and combinations that contain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Test {
    /// Comparison with a constant.
    Compare(CompareOp, Datum),
    /// Equality to one of the constants.
    In(Vec<Datum>),
    /// Range with both ends included.
    Between(Datum, Datum),
    /// `LIKE`, or `NOT LIKE`.
    Like {
        pattern: LikePattern,
        is_negated: bool,
    },
    IsNull,
    IsNotNull,
    /// Conjunction.
    All(Vec<Test>),
    /// Disjunction; false if empty.
    Any(Vec<Test>),
}

/// Operator of a comparison `value op datum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompareOp {
    Eq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
}

/// Zone-map entry: statistics of a column for a set of rows (a shard, a row group or a page). A missing bound is
/// unknown.
#[derive(Debug, Clone, Copy)]
pub struct ZoneMapEntry<'a> {
    pub rows: u64,
    /// Number of NULLs; `None` if unknown.
    pub nulls: Option<u64>,
    pub min: Option<&'a Datum>,
    pub max: Option<&'a Datum>,
    /// True if the bounds are actual values.
    pub exact: bool,
}

impl Test {
    /// Returns whether some row of the zone may pass; false only if certainly none does.
    #[must_use]
    pub fn may_pass(&self, zone: &ZoneMapEntry<'_>) -> bool {
        let all_null = zone.nulls == Some(zone.rows);
        match self {
            Test::IsNull => zone.nulls != Some(0),
            Test::IsNotNull => !all_null,
            Test::All(tests) => tests.iter().all(|test| test.may_pass(zone)),
            Test::Any(tests) => tests.iter().any(|test| test.may_pass(zone)),
            _ if all_null => false,
            Test::Between(low, high) => {
                zone.may_have_at_least(low) && zone.may_have_at_most(high) && !is_range_empty(low, high)
            }
            Test::In(values) => values.iter().any(|value| zone.may_contain(value)),
            Test::Like { pattern, is_negated } => *is_negated || zone.may_have_prefix(&pattern.prefix),
            Test::Compare(op, value) => match op {
                CompareOp::Eq => zone.may_contain(value),
                CompareOp::NotEq => !zone.contains_only(value),
                CompareOp::Less => !matches!(zone.compare_min(value), Some(Ordering::Equal | Ordering::Greater)),
                CompareOp::LessEq => zone.may_have_at_most(value),
                CompareOp::Greater => !matches!(zone.compare_max(value), Some(Ordering::Less | Ordering::Equal)),
                CompareOp::GreaterEq => zone.may_have_at_least(value),
            },
        }
    }
}

impl<'a> ZoneMapEntry<'a> {
    /// Returns the zone-map entry of a shard's column.
    #[must_use]
    pub fn from_stats(rows: u64, stats: &'a ColumnStats) -> Self {
        let nulls = (!stats.nulls_guessed).then_some(stats.nulls);
        Self { rows, nulls, min: stats.min.as_ref(), max: stats.max.as_ref(), exact: stats.bounds_exact }
    }

    fn compare_min(&self, value: &Datum) -> Option<Ordering> {
        self.min.and_then(|min| min.compare(value))
    }

    fn compare_max(&self, value: &Datum) -> Option<Ordering> {
        self.max.and_then(|max| max.compare(value))
    }

    /// Returns true if some value may be at least `value`.
    fn may_have_at_least(&self, value: &Datum) -> bool {
        self.compare_max(value) != Some(Ordering::Less)
    }

    /// Returns true if some value may be at most `value`.
    fn may_have_at_most(&self, value: &Datum) -> bool {
        self.compare_min(value) != Some(Ordering::Greater)
    }

    /// Returns true if some value may equal `value`.
    fn may_contain(&self, value: &Datum) -> bool {
        self.may_have_at_least(value) && self.may_have_at_most(value)
    }

    /// Returns true if some text may start with `prefix`.
    fn may_have_prefix(&self, prefix: &[u8]) -> bool {
        let is_below = matches!(self.max, Some(Datum::Text(max)) if max.as_bytes() < prefix);
        let is_above = |min: &[u8]| prefix < min && !min.starts_with(prefix);
        !is_below && !matches!(self.min, Some(Datum::Text(min)) if is_above(min.as_bytes()))
    }

    /// Returns true if every value that is not NULL certainly equals `value`.
    fn contains_only(&self, value: &Datum) -> bool {
        self.exact
            && self.compare_min(value) == Some(Ordering::Equal)
            && self.compare_max(value) == Some(Ordering::Equal)
    }
}

fn is_range_empty(low: &Datum, high: &Datum) -> bool {
    low.compare(high) == Some(Ordering::Greater)
}
