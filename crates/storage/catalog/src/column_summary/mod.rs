//! Column statistics of all shards of a table, combined.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use imbl::OrdMap;
use shards::{ColumnStats, Datum, Hll, ShardMeta};
use types::ColumnId;

#[cfg(test)]
mod tests;

/// Maximum number of frequent values per column.
const HEAVY_HITTER_COUNT_MAX: usize = 16;

/// Statistics of one column over all shards.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnSummary {
    /// Number of rows in the shards that contain the column.
    pub rows: u64,
    pub nulls: u64,
    /// Lower bound of all values; `None` if unknown or if there is no value.
    pub min: Option<Datum>,
    /// Upper bound of all values; `None` if unknown or if there is no value.
    pub max: Option<Datum>,
    /// Whether `min` and `max` occur as values.
    pub bounds_exact: bool,
    /// Estimated number of distinct non-NULL values.
    pub distinct: u64,
    /// True if it is proven, not estimated, that no value occurs twice in the table and none is NULL.
    pub unique: bool,
    /// True if in every shard the values are in ascending order and none is NULL.
    pub ascending: bool,
    /// Mean length of runs of equal adjacent values.
    pub average_run: f64,
    /// Frequent values with their estimated counts, most frequent first.
    pub heavy_hitters: Vec<(Datum, u64)>,
    /// Bytes of the column in all files.
    pub bytes: u64,
}

impl ColumnSummary {
    /// Adds rows that lack the column and read NULL, or one other value if `has_value`.
    pub(crate) fn with_missing_rows(mut self, rows: u64, has_value: bool) -> Self {
        if rows == 0 {
            return self;
        }
        self.rows += rows;
        self.unique = false;
        self.ascending = false;
        if has_value {
            self.distinct += 1;
            (self.min, self.max, self.bounds_exact) = (None, None, false);
        } else {
            self.nulls += rows;
        }
        self
    }
}

/// Column statistics over a set of shards, to which shards can be added.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedStatistics {
    rows: u64,
    columns: BTreeMap<ColumnId, ColumnAccumulator>,
}

#[derive(Debug, Clone)]
struct ColumnAccumulator {
    summary: ColumnSummary,
    distinct: Hll,
    /// Sum over shards of rows divided by average run length.
    run_count: f64,
    min: MergedBound,
    max: MergedBound,
    /// Minimum and maximum per shard, as long as every shard is strictly ascending and no two ranges overlap.
    disjoint_ranges: Option<OrdMap<DatumKey, Datum>>,
}

/// Minimum or maximum over the shards so far.
#[derive(Debug, Clone)]
enum MergedBound {
    /// No value in any shard.
    Empty,
    Value(Datum),
    /// Not known: a shard has values and no bound for them.
    Unknown,
}

impl MergedStatistics {
    pub(crate) fn column(&self, column: ColumnId) -> Option<&ColumnSummary> {
        self.columns.get(&column).map(|column| &column.summary)
    }

    pub(crate) fn add(&mut self, shard: &ShardMeta) {
        self.rows += shard.rows;
        for stats in &shard.columns {
            self.columns.entry(stats.column).or_insert_with(ColumnAccumulator::new).add(shard.rows, stats);
        }
    }

    /// Adds the statistics of other shards.
    pub(crate) fn merge(&mut self, other: &MergedStatistics) {
        self.rows += other.rows;
        for (column, theirs) in &other.columns {
            self.columns.entry(*column).or_insert_with(ColumnAccumulator::new).merge(theirs);
        }
    }

    /// Reduces the shards' ranges to one that spans all of them. A range added later between them no longer proves
    /// uniqueness.
    pub(crate) fn collapse_ranges(&mut self) {
        for column in self.columns.values_mut() {
            let Some(ranges) = &column.disjoint_ranges else { continue };
            if let Some(((start, _), (_, end))) = ranges.get_min().zip(ranges.get_max()) {
                column.disjoint_ranges = Some(OrdMap::unit(start.clone(), end.clone()));
            }
        }
    }

    /// Returns the distinct-value sketch and the frequent values of a column; `None` if no shard contains it.
    pub(crate) fn sketch(&self, column: ColumnId) -> Option<(&Hll, &[(Datum, u64)])> {
        self.columns.get(&column).map(|column| (&column.distinct, column.summary.heavy_hitters.as_slice()))
    }

    /// Takes over sketches and frequent values from `more`, which covers these shards and others; scales the counts by
    /// rows.
    pub(crate) fn take_sketches_from(&mut self, more: &MergedStatistics) {
        for (id, column) in &mut self.columns {
            let Some(known) = more.columns.get(id) else { continue };
            let (rows, of) = (u128::from(column.summary.rows), u128::from(known.summary.rows.max(1)));
            let part = |count: u64| u64::try_from(u128::from(count) * rows / of).unwrap_or(u64::MAX);
            column.distinct = known.distinct.clone();
            column.summary.heavy_hitters =
                known.summary.heavy_hitters.iter().map(|(value, count)| (value.clone(), part(*count))).collect();
        }
    }

    /// Computes the summaries from what was added.
    pub(crate) fn finish(&mut self) {
        for column in self.columns.values_mut() {
            column.finish(self.rows);
        }
    }
}

impl ColumnAccumulator {
    fn new() -> Self {
        Self {
            summary: ColumnSummary { bounds_exact: true, ascending: true, ..ColumnSummary::default() },
            distinct: Hll::default(),
            run_count: 0.0,
            min: MergedBound::Empty,
            max: MergedBound::Empty,
            disjoint_ranges: Some(OrdMap::new()),
        }
    }

    fn add(&mut self, rows: u64, stats: &ColumnStats) {
        if rows == 0 {
            return;
        }
        let summary = &mut self.summary;
        summary.rows += rows;
        summary.nulls += stats.nulls;
        summary.bytes += stats.bytes;
        summary.ascending &= stats.ascending;
        summary.bounds_exact &= stats.bounds_exact || stats.nulls == rows;
        self.distinct.merge(&stats.distinct);
        self.run_count += rows as f64 / f64::from(stats.average_run.max(1.0));
        if stats.nulls < rows {
            self.min.extend(stats.min.as_ref(), Ordering::Less);
            self.max.extend(stats.max.as_ref(), Ordering::Greater);
        }
        summary.add_frequent(&stats.heavy_hitters);
        self.disjoint_ranges = self.disjoint_ranges.take().filter(|_| stats.strictly_ascending).and_then(|ranges| {
            let (min, max) = stats.min.as_ref().zip(stats.max.as_ref())?;
            add_range(ranges, min, max)
        });
    }

    fn merge(&mut self, other: &ColumnAccumulator) {
        let (summary, theirs) = (&mut self.summary, &other.summary);
        summary.rows += theirs.rows;
        summary.nulls += theirs.nulls;
        summary.bytes += theirs.bytes;
        summary.ascending &= theirs.ascending;
        summary.bounds_exact &= theirs.bounds_exact;
        summary.add_frequent(&theirs.heavy_hitters);
        self.distinct.merge(&other.distinct);
        self.run_count += other.run_count;
        self.min.extend_to_bound(&other.min, Ordering::Less);
        self.max.extend_to_bound(&other.max, Ordering::Greater);
        self.disjoint_ranges =
            self.disjoint_ranges.take().zip(other.disjoint_ranges.as_ref()).and_then(|(ranges, theirs)| {
                theirs.iter().try_fold(ranges, |ranges, (start, end)| add_range(ranges, &start.0, end))
            });
    }

    fn finish(&mut self, table_rows: u64) {
        let summary = &mut self.summary;
        summary.min = self.min.value();
        summary.max = self.max.value();
        summary.distinct = self.distinct.estimate();
        summary.unique = self.disjoint_ranges.is_some() && summary.rows == table_rows;
        summary.average_run = if self.run_count == 0.0 { 1.0 } else { summary.rows as f64 / self.run_count };
    }
}

impl ColumnSummary {
    fn add_frequent(&mut self, values: &[(Datum, u64)]) {
        for (value, count) in values {
            match self.heavy_hitters.iter_mut().find(|(known, _)| known == value) {
                Some((_, known)) => *known += count,
                None => self.heavy_hitters.push((value.clone(), *count)),
            }
        }
        self.heavy_hitters.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        self.heavy_hitters.truncate(HEAVY_HITTER_COUNT_MAX);
    }
}

impl MergedBound {
    fn extend_to_bound(&mut self, other: &MergedBound, further: Ordering) {
        match other {
            MergedBound::Empty => {}
            MergedBound::Value(value) => self.extend(Some(value), further),
            MergedBound::Unknown => *self = MergedBound::Unknown,
        }
    }

    /// Extends the bound to `other` if that compares to it as `further`.
    fn extend(&mut self, other: Option<&Datum>, further: Ordering) {
        let Some(other) = other else {
            *self = MergedBound::Unknown;
            return;
        };
        match self {
            MergedBound::Empty => *self = MergedBound::Value(other.clone()),
            MergedBound::Value(known) => match other.compare(known) {
                Some(ordering) if ordering == further => *known = other.clone(),
                Some(_) => {}
                // The column was retyped, and values of different types have no common bound.
                None => *self = MergedBound::Unknown,
            },
            MergedBound::Unknown => {}
        }
    }

    fn value(&self) -> Option<Datum> {
        match self {
            MergedBound::Value(value) => Some(value.clone()),
            MergedBound::Empty | MergedBound::Unknown => None,
        }
    }
}

/// Adds a range; returns `None` if it overlaps another, so that uniqueness is not proven.
fn add_range(mut ranges: OrdMap<DatumKey, Datum>, min: &Datum, max: &Datum) -> Option<OrdMap<DatumKey, Datum>> {
    let key = DatumKey(min.clone());
    let ends_before = ranges.get_prev(&key).is_none_or(|(_, end)| end.compare(min) == Some(Ordering::Less));
    let starts_after =
        ranges.get_next(&key).is_none_or(|(DatumKey(start), _)| max.compare(start) == Some(Ordering::Less));
    if !ends_before || !starts_after {
        return None;
    }
    ranges.insert(key, max.clone());
    Some(ranges)
}

/// Value as a key of an ordered map.
#[derive(Debug, Clone, PartialEq)]
struct DatumKey(Datum);

// `Datum` equality is reflexive: NaN equals itself.
impl Eq for DatumKey {}

impl Ord for DatumKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&other.0).unwrap_or_else(|| variant_rank(&self.0).cmp(&variant_rank(&other.0)))
    }
}

impl PartialOrd for DatumKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns a number per variant. Values of different variants are ordered by it, which makes the order total.
fn variant_rank(value: &Datum) -> u8 {
    match value {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Decimal(_) => 2,
        Datum::Float(_) => 3,
        Datum::Text(_) => 4,
        Datum::Bytes(_) => 5,
    }
}
