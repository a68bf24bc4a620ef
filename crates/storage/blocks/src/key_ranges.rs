//! Conditions on numbers as disjoint ranges of keys.

/// Inclusive ranges of keys, ascending and disjoint. NULL is in no range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRanges(Vec<(i64, i64)>);

impl KeyRanges {
    /// Creates ranges from pairs of inclusive bounds in any order, which may overlap or be empty.
    pub fn new(mut ranges: Vec<(i64, i64)>) -> Self {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    /// Returns ranges that contain no key.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the range of all keys.
    pub fn all() -> Self {
        Self(vec![(i64::MIN, i64::MAX)])
    }

    /// Returns the ranges in ascending order.
    pub fn as_slice(&self) -> &[(i64, i64)] {
        &self.0
    }

    /// Whether a key is in one of the ranges.
    pub fn contains(&self, key: i64) -> bool {
        let next = self.0.partition_point(|(_, high)| *high < key);
        self.0.get(next).is_some_and(|(low, _)| *low <= key)
    }

    /// Returns the ranges that overlap `min..=max`.
    pub(crate) fn overlapping(&self, min: i64, max: i64) -> &[(i64, i64)] {
        let from = self.0.partition_point(|(_, high)| *high < min);
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|(low, _)| *low <= max)]
    }

    /// Evaluates the ranges against the keys `min..=max`: none, some or all of them pass.
    pub fn prune(&self, min: i64, max: i64) -> PruneResult {
        match self.overlapping(min, max) {
            [] => PruneResult::None,
            [(low, high)] if *low <= min && max <= *high => PruneResult::All,
            _ => PruneResult::Some,
        }
    }
}

/// Verdict of a filter against the minimum and maximum of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneResult {
    /// No value passes.
    None,
    /// Some values may pass.
    Some,
    /// Every value passes.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_and_ordered() {
        let ranges = KeyRanges::new(vec![(5, 9), (1, 2), (3, 4), (20, 10), (12, 12), (i64::MAX, i64::MAX)]);
        assert_eq!(ranges.as_slice(), [(1, 9), (12, 12), (i64::MAX, i64::MAX)]);
        assert!(ranges.contains(1) && ranges.contains(9) && ranges.contains(12) && !ranges.contains(10));
        assert_eq!(ranges.prune(2, 8), PruneResult::All);
        assert_eq!(ranges.prune(2, 12), PruneResult::Some);
        assert_eq!(ranges.prune(10, 11), PruneResult::None);
        assert_eq!(ranges.prune(13, i64::MAX), PruneResult::Some);
        assert_eq!(KeyRanges::none().prune(0, 0), PruneResult::None);
    }
}
