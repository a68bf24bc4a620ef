//! What a scan knows of the order of its rows, by the statistics of its shards.

use std::cmp::Ordering;

use shards::{ColumnStats, Datum};

use super::Scan;

impl Scan {
    /// Whether no value of a column, by its position, is in two rows, and none is NULL.
    pub(crate) fn is_unique(&self, column: usize) -> bool {
        let follows = |end: &Datum, start: &Datum| end.compare(start) == Some(Ordering::Less);
        self.ranges(column, |stats| stats.strictly_ascending).is_some_and(|ranges| are_apart(&ranges, follows))
    }

    /// Whether the values of a column, by its position, never fall within a shard, none is NULL, and shards have at most a value in common at
    /// their ends.
    pub(crate) fn is_clustered(&self, column: usize) -> bool {
        let follows = |end: &Datum, start: &Datum| end.compare(start).is_some_and(Ordering::is_le);
        self.ranges(column, |stats| stats.ascending).is_some_and(|ranges| are_apart(&ranges, follows))
    }

    /// The least and greatest values of shards that all fulfil `is_ordered`, in order; `None` where a row may be in none of them.
    fn ranges(&self, column: usize, is_ordered: impl Fn(&ColumnStats) -> bool) -> Option<Vec<(&Datum, &Datum)>> {
        let id = self.columns.get(column)?.id;
        if self.has_fresh_rows() {
            return None;
        }
        let mut ranges = Vec::with_capacity(self.shards.len());
        for shard in self.shards.iter().filter(|shard| 0 < shard.meta.rows) {
            let stats = shard.meta.column(id).filter(|stats| stats.bounds_exact && is_ordered(stats))?;
            ranges.push((stats.min.as_ref()?, stats.max.as_ref()?));
        }
        // Floats that are equal may differ, and values of a type that the column had before are in no order with others.
        let is_alike = |(min, max): &(&Datum, &Datum)| {
            let is_float = matches!(min, Datum::Float(_));
            !is_float && [min, max].iter().all(|end| end.compare(ranges[0].0).is_some())
        };
        if !ranges.iter().all(is_alike) {
            return None;
        }
        ranges.sort_by(|(one, _), (other, _)| one.compare(other).unwrap_or(Ordering::Equal));
        Some(ranges)
    }
}

fn are_apart(ranges: &[(&Datum, &Datum)], follows: impl Fn(&Datum, &Datum) -> bool) -> bool {
    ranges.windows(2).all(|pair| follows(pair[0].1, pair[1].0))
}
