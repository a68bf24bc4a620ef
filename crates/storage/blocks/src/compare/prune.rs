//! Pruning: evaluation of conditions against a block's header, before the body is read.
//!
//! The verdict is [`PruneResult::None`] if no row passes, [`PruneResult::All`] if every row passes, else [`PruneResult::Some`].

use crate::compare::condition_ranges::{float_ranges, int128_ranges, integer_ranges};
use crate::key_ranges::PruneResult;
use crate::text_condition::TextMatcher;
use crate::{BlockHeader, Condition, Encoding, KeyRanges, TextCondition, VectorHeader};

impl BlockHeader {
    /// Evaluates a condition against the bounds of a block of integers.
    pub fn prune_integers(&self, condition: &Condition<i128>) -> PruneResult {
        match condition {
            Condition::IsNull => self.prune_nulls(true),
            Condition::IsNotNull => self.prune_nulls(false),
            _ if self.encoding == Encoding::PlainWide => {
                let ranges = int128_ranges(condition);
                let holds_all = |(low, high): &(i128, i128)| *low <= self.min && self.max <= *high;
                let holds_none = |(low, high): &(i128, i128)| self.max < *low || *high < self.min || high < low;
                let zone = if ranges.iter().any(holds_all) {
                    PruneResult::All
                } else if ranges.iter().all(holds_none) {
                    PruneResult::None
                } else {
                    PruneResult::Some
                };
                self.with_nulls(zone)
            }
            _ => self.prune_codes(&integer_ranges(condition, self.offset)),
        }
    }

    /// Evaluates a condition against the bounds of a block of floats.
    pub fn prune_floats(&self, condition: &Condition<f64>) -> PruneResult {
        match condition {
            Condition::IsNull => self.prune_nulls(true),
            Condition::IsNotNull => self.prune_nulls(false),
            _ => self.prune_codes(&float_ranges(condition, self.kind)),
        }
    }

    /// Evaluates ranges against the bounds of a block of dictionary indices.
    pub fn prune_codes(&self, codes: &KeyRanges) -> PruneResult {
        self.prune_vectors(|entry| codes.prune(entry.min, entry.max))
    }

    /// Evaluates a condition against the bounds of a block of strings.
    pub fn prune_text(&self, condition: &TextCondition) -> PruneResult {
        match condition {
            TextCondition::IsNull => self.prune_nulls(true),
            TextCondition::IsNotNull => self.prune_nulls(false),
            _ => {
                let matcher = TextMatcher::new(condition);
                self.prune_vectors(|entry| matcher.prune(entry.min, entry.max))
            }
        }
    }

    /// Evaluates IS NULL if `is_null` is true, else IS NOT NULL.
    fn prune_nulls(&self, is_null: bool) -> PruneResult {
        match self.null_count {
            0 => {
                if is_null {
                    PruneResult::None
                } else {
                    PruneResult::All
                }
            }
            nulls if nulls == self.rows => {
                if is_null {
                    PruneResult::All
                } else {
                    PruneResult::None
                }
            }
            _ => PruneResult::Some,
        }
    }

    /// Combines the verdicts of all vectors that have values.
    fn prune_vectors(&self, of_entry: impl Fn(&VectorHeader) -> PruneResult) -> PruneResult {
        let non_null = self.vector_headers.iter().enumerate();
        let non_null = non_null.filter(|(vector, entry)| usize::from(entry.null_count) < self.rows_in_vector(*vector));
        let zone = non_null
            .map(|(_, entry)| of_entry(entry))
            .reduce(|one, other| if one == other { one } else { PruneResult::Some });
        self.with_nulls(zone.unwrap_or(PruneResult::None))
    }

    /// Accounts for NULLs, which pass no condition on values.
    fn with_nulls(&self, of_values: PruneResult) -> PruneResult {
        match of_values {
            _ if self.null_count == self.rows => PruneResult::None,
            PruneResult::All if self.null_count != 0 => PruneResult::Some,
            zone => zone,
        }
    }
}
