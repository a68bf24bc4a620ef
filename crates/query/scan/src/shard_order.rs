//! Order and uniqueness of a scan's rows, proven by shard statistics.

use std::cmp::Ordering;

use shards::{ColumnStats, Datum};

use crate::scan::Scan;

impl Scan {
    /// Returns true if the column at this position has distinct values and no NULLs.
    pub fn is_unique(&self, column: usize) -> bool {
        let follows = |end: &Datum, start: &Datum| end.compare(start) == Some(Ordering::Less);
        self.is_ordered_by_bucket(column, |stats| stats.strictly_ascending, follows)
    }

    /// Returns true if the column at this position is sorted within each shard, has no NULLs, and shards whose ranges
    /// meet have at most one value in common, at their ends.
    pub fn is_clustered(&self, column: usize) -> bool {
        let follows = |end: &Datum, start: &Datum| end.compare(start).is_some_and(Ordering::is_le);
        self.is_ordered_by_bucket(column, |stats| stats.ascending, follows)
    }

    /// Returns true if each shard satisfies `is_ordered` and the ranges of shards with common buckets follow one
    /// another. In a table distributed on the column, shards without a common bucket have no value in common.
    fn is_ordered_by_bucket(
        &self,
        column: usize,
        is_ordered: impl Fn(&ColumnStats) -> bool,
        follows: impl Fn(&Datum, &Datum) -> bool,
    ) -> bool {
        self.shard_ranges(column, is_ordered).is_some_and(|ranges| follow_one_another_by_bucket(&ranges, follows))
    }

    /// Returns the value ranges of the shards in ascending order; `None` if one does not satisfy `is_ordered`, or if
    /// there are unflushed rows.
    fn shard_ranges(&self, column: usize, is_ordered: impl Fn(&ColumnStats) -> bool) -> Option<Vec<ValueRange<'_>>> {
        let id = self.columns.get(column)?.id;
        if self.may_have_unflushed_rows() {
            return None;
        }
        let is_bucketed = self.bucketed_by == Some(id);
        let mut ranges = Vec::with_capacity(self.shards.len());
        for shard in self.shards.iter().filter(|shard| 0 < shard.meta.rows) {
            let stats = shard.meta.column(id).filter(|stats| stats.bounds_exact && is_ordered(stats))?;
            let buckets = if is_bucketed { shard.buckets } else { u64::MAX };
            ranges.push(ValueRange { min: stats.min.as_ref()?, max: stats.max.as_ref()?, buckets });
        }
        // Equal floats may differ in their bits, and values of a former column type cannot be compared with the others.
        let Some(first) = ranges.first().map(|range| range.min) else { return Some(ranges) };
        let is_alike = |range: &ValueRange<'_>| {
            let is_float = matches!(range.min, Datum::Float(_));
            !is_float && [range.min, range.max].iter().all(|end| end.compare(first).is_some())
        };
        if !ranges.iter().all(is_alike) {
            return None;
        }
        ranges.sort_by(|one, other| one.min.compare(other.min).unwrap_or(Ordering::Equal));
        Some(ranges)
    }
}

/// Value range of a shard, with its buckets: all bits are set if they are unknown.
struct ValueRange<'a> {
    min: &'a Datum,
    max: &'a Datum,
    /// Bit set of buckets.
    buckets: u64,
}

/// Returns true if, bucket by bucket, each range follows the one before it.
fn follow_one_another_by_bucket(ranges: &[ValueRange<'_>], follows: impl Fn(&Datum, &Datum) -> bool) -> bool {
    let all = ranges.iter().fold(0, |all, range| all | range.buckets);
    let of = |bucket: u32| ranges.iter().filter(move |range| range.buckets & (1 << bucket) != 0);
    (0..u64::BITS).filter(|bucket| all & (1 << bucket) != 0).all(|bucket| follow_one_another(of(bucket), &follows))
}

fn follow_one_another<'a>(
    ranges: impl Iterator<Item = &'a ValueRange<'a>>,
    follows: impl Fn(&Datum, &Datum) -> bool,
) -> bool {
    let mut end = None;
    for range in ranges {
        if end.is_some_and(|end| !follows(end, range.min)) {
            return false;
        }
        end = Some(range.max);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_other_buckets_may_interleave() {
        let ends = [0, 5, 5, 9, 20].map(Datum::Int);
        let [zero, five, also_five, nine, twenty] = &ends;
        let range = |min, max, buckets| ValueRange { min, max, buckets };
        let follows = |end: &Datum, start: &Datum| end.compare(start).is_some_and(Ordering::is_le);
        let are_apart = |ranges: &[ValueRange<'_>]| follow_one_another_by_bucket(ranges, follows);
        assert!(are_apart(&[]));
        assert!(are_apart(&[range(zero, five, 0b01), range(zero, twenty, 0b10), range(also_five, nine, 0b01)]));
        assert!(!are_apart(&[range(zero, nine, 0b01), range(five, twenty, 0b01)]), "one bucket");
        assert!(!are_apart(&[range(zero, nine, 0b01), range(five, twenty, 0b11)]), "one of two");
        assert!(!are_apart(&[range(zero, nine, 1 << 63), range(five, twenty, u64::MAX)]), "unknown buckets");
    }
}
