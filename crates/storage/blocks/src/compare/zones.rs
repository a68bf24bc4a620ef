//! Pruning: evaluation of conditions against a block's header, before the body is read.
//!
//! The verdict is [`Zone::None`] if no row passes, [`Zone::All`] if every row passes, else [`Zone::Some`].

use crate::compare::lower::{float_ranges, integer_ranges, wide_ranges};
use crate::ranges::Zone;
use crate::text::Matcher;
use crate::{Condition, Entry, Head, Ranges, Scheme, TextCondition};

impl Head {
    /// Evaluates a condition against the bounds of a block of integers.
    pub fn zone_of_integers(&self, condition: &Condition<i128>) -> Zone {
        match condition {
            Condition::IsNull => self.zone_of_nulls(true),
            Condition::IsNotNull => self.zone_of_nulls(false),
            _ if self.scheme == Scheme::PlainWide => {
                let ranges = wide_ranges(condition);
                let holds_all = |(low, high): &(i128, i128)| *low <= self.min && self.max <= *high;
                let holds_none = |(low, high): &(i128, i128)| self.max < *low || *high < self.min || high < low;
                let zone = if ranges.iter().any(holds_all) {
                    Zone::All
                } else if ranges.iter().all(holds_none) {
                    Zone::None
                } else {
                    Zone::Some
                };
                self.with_nulls(zone)
            }
            _ => self.zone_of_codes(&integer_ranges(condition, self.offset)),
        }
    }

    /// Evaluates a condition against the bounds of a block of floats.
    pub fn zone_of_floats(&self, condition: &Condition<f64>) -> Zone {
        match condition {
            Condition::IsNull => self.zone_of_nulls(true),
            Condition::IsNotNull => self.zone_of_nulls(false),
            _ => self.zone_of_codes(&float_ranges(condition, self.kind)),
        }
    }

    /// Evaluates ranges against the bounds of a block of dictionary indices.
    pub fn zone_of_codes(&self, codes: &Ranges) -> Zone {
        self.zone_by(|entry| codes.zone(entry.min, entry.max))
    }

    /// Evaluates a condition against the bounds of a block of strings.
    pub fn zone_of_text(&self, condition: &TextCondition) -> Zone {
        match condition {
            TextCondition::IsNull => self.zone_of_nulls(true),
            TextCondition::IsNotNull => self.zone_of_nulls(false),
            _ => {
                let matcher = Matcher::new(condition);
                self.zone_by(|entry| matcher.zone(entry.min, entry.max))
            }
        }
    }

    /// Evaluates IS NULL if `keep` is true, else IS NOT NULL.
    fn zone_of_nulls(&self, keep: bool) -> Zone {
        match self.nulls {
            0 => {
                if keep {
                    Zone::None
                } else {
                    Zone::All
                }
            }
            nulls if nulls == self.rows => {
                if keep {
                    Zone::All
                } else {
                    Zone::None
                }
            }
            _ => Zone::Some,
        }
    }

    /// Combines the verdicts of all vectors that have values.
    fn zone_by(&self, of_entry: impl Fn(&Entry) -> Zone) -> Zone {
        let known = self.entries.iter().enumerate();
        let known = known.filter(|(vector, entry)| usize::from(entry.nulls) < self.rows_in(*vector));
        let zone =
            known.map(|(_, entry)| of_entry(entry)).reduce(|one, other| if one == other { one } else { Zone::Some });
        self.with_nulls(zone.unwrap_or(Zone::None))
    }

    /// Accounts for NULLs, which pass no condition on values.
    fn with_nulls(&self, of_values: Zone) -> Zone {
        match of_values {
            _ if self.nulls == self.rows => Zone::None,
            Zone::All if self.nulls != 0 => Zone::Some,
            zone => zone,
        }
    }
}
