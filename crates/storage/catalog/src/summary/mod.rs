//! Statistics of all shards of a table as one.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use imbl::OrdMap;
use shards::{ColumnStats, Datum, Hll, ShardMeta};
use types::ColumnId;

#[cfg(test)]
mod tests;

/// The most frequent values kept per column.
const HEAVY_HITTER_COUNT_MAX: usize = 16;

/// What all shards together say about one column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnSummary {
    /// Rows of the shards that carry the column.
    pub rows: u64,
    pub nulls: u64,
    /// No value is less; `None` where that is not known or there is no value.
    pub min: Option<Datum>,
    /// No value is greater; `None` where that is not known or there is no value.
    pub max: Option<Datum>,
    /// Whether `min` and `max` are values that occur.
    pub bounds_exact: bool,
    /// Estimated distinct values that are not NULL.
    pub distinct: u64,
    /// No value occurs twice in the table and none is NULL: proven, not estimated.
    pub unique: bool,
    /// Within every shard no value is less than the one before it, and none is NULL.
    pub ascending: bool,
    /// Mean length of runs of equal neighbours.
    pub average_run: f64,
    /// Frequent values with their estimated count, most frequent first.
    pub heavy_hitters: Vec<(Datum, u64)>,
    /// Bytes of the column in all files.
    pub bytes: u64,
}

impl ColumnSummary {
    /// With so many rows more that lack the column, and answer NULL, or one value if `has_value`.
    pub(crate) fn with_absent(mut self, rows: u64, has_value: bool) -> Self {
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

/// Statistics of the columns over some shards; shards can be added at any time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merged {
    rows: u64,
    columns: BTreeMap<ColumnId, Column>,
}

#[derive(Debug, Clone)]
struct Column {
    summary: ColumnSummary,
    distinct: Hll,
    /// Rows divided by average run, summed over shards.
    runs: f64,
    min: Bound,
    max: Bound,
    /// Each shard's least and greatest value, while every shard ascends strictly and no two of these ranges meet.
    ranges: Option<OrdMap<Key, Datum>>,
}

/// A bound over the shards so far.
#[derive(Debug, Clone)]
enum Bound {
    /// No shard has had a value.
    Empty,
    Known(Datum),
    /// A shard has values and does not say how far they go.
    Unknown,
}

impl Merged {
    pub(crate) fn column(&self, column: ColumnId) -> Option<&ColumnSummary> {
        self.columns.get(&column).map(|column| &column.summary)
    }

    pub(crate) fn add(&mut self, shard: &ShardMeta) {
        self.rows += shard.rows;
        for stats in &shard.columns {
            self.columns.entry(stats.column).or_insert_with(Column::new).add(shard.rows, stats);
        }
    }

    /// Adds what another says of other shards.
    pub(crate) fn merge(&mut self, other: &Merged) {
        self.rows += other.rows;
        for (column, theirs) in &other.columns {
            self.columns.entry(*column).or_insert_with(Column::new).merge(theirs);
        }
    }

    /// Keeps of the shards' ranges only how far they go together: what falls between them later proves nothing any more.
    pub(crate) fn close(&mut self) {
        for column in self.columns.values_mut() {
            let Some(ranges) = &column.ranges else { continue };
            if let Some(((start, _), (_, end))) = ranges.get_min().zip(ranges.get_max()) {
                column.ranges = Some(OrdMap::unit(start.clone(), end.clone()));
            }
        }
    }

    /// The sketch of a column's values, and the frequent ones; `None` for a column of no shard.
    pub(crate) fn sketched(&self, column: ColumnId) -> Option<(&Hll, &[(Datum, u64)])> {
        self.columns.get(&column).map(|column| (&column.distinct, column.summary.heavy_hitters.as_slice()))
    }

    /// Takes sketches and frequent values of more shards, those of its own among them, in the same measure.
    pub(crate) fn sketch_as(&mut self, more: &Merged) {
        for (id, column) in &mut self.columns {
            let Some(known) = more.columns.get(id) else { continue };
            let (rows, of) = (u128::from(column.summary.rows), u128::from(known.summary.rows.max(1)));
            let part = |count: u64| u64::try_from(u128::from(count) * rows / of).unwrap_or(u64::MAX);
            column.distinct = known.distinct.clone();
            column.summary.heavy_hitters =
                known.summary.heavy_hitters.iter().map(|(value, count)| (value.clone(), part(*count))).collect();
        }
    }

    /// Makes the summaries say what was added.
    pub(crate) fn conclude(&mut self) {
        for column in self.columns.values_mut() {
            column.conclude(self.rows);
        }
    }
}

impl Column {
    fn new() -> Self {
        Self {
            summary: ColumnSummary { bounds_exact: true, ascending: true, ..ColumnSummary::default() },
            distinct: Hll::default(),
            runs: 0.0,
            min: Bound::Empty,
            max: Bound::Empty,
            ranges: Some(OrdMap::new()),
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
        self.runs += rows as f64 / f64::from(stats.average_run.max(1.0));
        if stats.nulls < rows {
            self.min.meet(stats.min.as_ref(), Ordering::Less);
            self.max.meet(stats.max.as_ref(), Ordering::Greater);
        }
        summary.add_frequent(&stats.heavy_hitters);
        self.ranges = self.ranges.take().filter(|_| stats.strictly_ascending).and_then(|ranges| {
            let (min, max) = stats.min.as_ref().zip(stats.max.as_ref())?;
            add_range(ranges, min, max)
        });
    }

    fn merge(&mut self, other: &Column) {
        let (summary, theirs) = (&mut self.summary, &other.summary);
        summary.rows += theirs.rows;
        summary.nulls += theirs.nulls;
        summary.bytes += theirs.bytes;
        summary.ascending &= theirs.ascending;
        summary.bounds_exact &= theirs.bounds_exact;
        summary.add_frequent(&theirs.heavy_hitters);
        self.distinct.merge(&other.distinct);
        self.runs += other.runs;
        self.min.meet_bound(&other.min, Ordering::Less);
        self.max.meet_bound(&other.max, Ordering::Greater);
        self.ranges = self.ranges.take().zip(other.ranges.as_ref()).and_then(|(ranges, theirs)| {
            theirs.iter().try_fold(ranges, |ranges, (start, end)| add_range(ranges, &start.0, end))
        });
    }

    fn conclude(&mut self, table_rows: u64) {
        let summary = &mut self.summary;
        summary.min = self.min.value();
        summary.max = self.max.value();
        summary.distinct = self.distinct.estimate();
        summary.unique = self.ranges.is_some() && summary.rows == table_rows;
        summary.average_run = if self.runs == 0.0 { 1.0 } else { summary.rows as f64 / self.runs };
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

impl Bound {
    fn meet_bound(&mut self, other: &Bound, further: Ordering) {
        match other {
            Bound::Empty => {}
            Bound::Known(value) => self.meet(Some(value), further),
            Bound::Unknown => *self = Bound::Unknown,
        }
    }

    /// Widens the bound to `other`, which goes further if it compares as `further`.
    fn meet(&mut self, other: Option<&Datum>, further: Ordering) {
        let Some(other) = other else {
            *self = Bound::Unknown;
            return;
        };
        match self {
            Bound::Empty => *self = Bound::Known(other.clone()),
            Bound::Known(known) => match other.compare(known) {
                Some(ordering) if ordering == further => *known = other.clone(),
                Some(_) => {}
                // The column was retyped: shards of both types do not bound each other.
                None => *self = Bound::Unknown,
            },
            Bound::Unknown => {}
        }
    }

    fn value(&self) -> Option<Datum> {
        match self {
            Bound::Known(value) => Some(value.clone()),
            Bound::Empty | Bound::Unknown => None,
        }
    }
}

/// The ranges with one more among them; `None` if that proves nothing.
fn add_range(mut ranges: OrdMap<Key, Datum>, min: &Datum, max: &Datum) -> Option<OrdMap<Key, Datum>> {
    let key = Key(min.clone());
    let ends_before = ranges.get_prev(&key).is_none_or(|(_, end)| end.compare(min) == Some(Ordering::Less));
    let starts_after = ranges.get_next(&key).is_none_or(|(Key(start), _)| max.compare(start) == Some(Ordering::Less));
    if !ends_before || !starts_after {
        return None;
    }
    ranges.insert(key, max.clone());
    Some(ranges)
}

/// A value as a key of an ordered map.
#[derive(Debug, Clone, PartialEq)]
struct Key(Datum);

// `Datum` equality is reflexive: NaN equals itself.
impl Eq for Key {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&other.0).unwrap_or_else(|| variant(&self.0).cmp(&variant(&other.0)))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A number per variant: values of different variants are ordered by it, so that the order is total.
fn variant(value: &Datum) -> u8 {
    match value {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Decimal(_) => 2,
        Datum::Float(_) => 3,
        Datum::Text(_) => 4,
        Datum::Bytes(_) => 5,
    }
}
