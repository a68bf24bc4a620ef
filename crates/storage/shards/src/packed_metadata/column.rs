//! Packed statistics of one column of neighbouring shards, and its merged zone-map entry.

use std::cmp::Ordering;
use std::sync::Arc;

use types::ColumnId;

use crate::packed_metadata::bounds::PackedBounds;
use crate::packed_metadata::integer_packing::PackedNumbers;
use crate::packed_metadata::shard_set::ShardSet;
use crate::packed_metadata::value_range::ValueRange;
use crate::predicate::ZoneMapEntry;
use crate::{ColumnStats, Datum, Hll, ShardMeta, Test};

/// Packed statistics of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PackedColumn {
    pub(super) id: ColumnId,
    /// Flags of each shard.
    flags: PackedNumbers,
    nulls: PackedNumbers,
    bounds: PackedBounds,
    /// Bits of each shard's `f32`.
    average_run: PackedNumbers,
    bytes: PackedNumbers,
    /// Estimated number of distinct values of each shard; sketches are not stored.
    distinct: PackedNumbers,
    /// Number of shards that have the column.
    pub(super) shard_count: usize,
    /// True if all shards that have the column have values and both bounds of it.
    pub(super) is_bounded: bool,
    /// True if the number of NULLs is unknown for some shard.
    has_unknown_nulls: bool,
    /// Zone-map entry of all shards that have the column.
    merged: MergedZone,
}

/// Owned zone-map entry, merged over shards.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MergedZone {
    rows: u64,
    nulls: Option<u64>,
    min: Option<Datum>,
    max: Option<Datum>,
    bounds_exact: bool,
}

const FLAG_HAS_COLUMN: u64 = 1;
const FLAG_HAS_MIN: u64 = 1 << 1;
const FLAG_HAS_MAX: u64 = 1 << 2;
const FLAG_BOUNDS_EXACT: u64 = 1 << 3;
const FLAG_NULLS_GUESSED: u64 = 1 << 4;
const FLAG_ASCENDING: u64 = 1 << 5;
const FLAG_STRICTLY_ASCENDING: u64 = 1 << 6;

impl PackedColumn {
    /// Packs the statistics of a column; `distinct` returns the number of distinct values in the shard at a position.
    pub(super) fn pack(id: ColumnId, shards: &[Arc<ShardMeta>], distinct: &dyn Fn(usize, ColumnId) -> u64) -> Self {
        let of: Vec<Option<&ColumnStats>> = shards.iter().map(|shard| shard.column(id)).collect();
        let numbers = |number: &dyn Fn(&ColumnStats) -> u64| {
            let numbers: Vec<u64> = of.iter().map(|stats| stats.map_or(0, number)).collect();
            PackedNumbers::pack(&numbers)
        };
        let bounds: Vec<_> = of
            .iter()
            .map(|stats| (stats.and_then(|stats| stats.min.as_ref()), stats.and_then(|stats| stats.max.as_ref())))
            .collect();
        let mut whole = MergedZone { rows: 0, nulls: Some(0), min: None, max: None, bounds_exact: true };
        let known: Vec<_> = shards.iter().zip(&of).filter_map(|(shard, stats)| Some((shard.rows, (*stats)?))).collect();
        whole.merge(&known);
        let is_bounded = |stats: &ColumnStats| stats.min.is_some() && stats.max.is_some();
        Self {
            id,
            flags: numbers(&column_flags),
            nulls: numbers(&|stats| stats.nulls),
            bounds: PackedBounds::pack(&bounds),
            average_run: numbers(&|stats| stats.average_run.to_bits().into()),
            bytes: numbers(&|stats| stats.bytes),
            distinct: PackedNumbers::pack(&(0..shards.len()).map(|place| distinct(place, id)).collect::<Vec<_>>()),
            shard_count: of.iter().flatten().count(),
            is_bounded: known.iter().all(|(rows, stats)| is_bounded(stats) && !are_all_null(*rows, stats)),
            has_unknown_nulls: of.iter().flatten().any(|stats| stats.nulls_guessed),
            merged: whole,
        }
    }

    /// Restores the statistics for a shard that has the column, without sketch and frequent values.
    pub(super) fn stats(&self, shard: usize) -> ColumnStats {
        let flags = self.flags.get(shard);
        let has = |flag| flags & flag != 0;
        ColumnStats {
            column: self.id,
            nulls: self.nulls.get(shard),
            nulls_guessed: has(FLAG_NULLS_GUESSED),
            min: has(FLAG_HAS_MIN).then(|| self.bounds.min(shard)),
            max: has(FLAG_HAS_MAX).then(|| self.bounds.max(shard)),
            bounds_exact: has(FLAG_BOUNDS_EXACT),
            distinct: Hll::default(),
            ascending: has(FLAG_ASCENDING),
            strictly_ascending: has(FLAG_STRICTLY_ASCENDING),
            average_run: f32::from_bits(u32::try_from(self.average_run.get(shard)).expect("f32 bits were packed")),
            heavy_hitters: Vec::new(),
            bytes: self.bytes.get(shard),
        }
    }

    /// Returns the estimated number of distinct values in a shard.
    pub(super) fn distinct(&self, shard: usize) -> u64 {
        self.distinct.get(shard)
    }

    /// Returns true if the shard has the column.
    pub(super) fn is_in_shard(&self, shard: usize) -> bool {
        self.flags.get(shard) & FLAG_HAS_COLUMN != 0
    }

    /// Returns the zone-map entry of all shards that have the column: a test that it cannot pass, no shard can pass.
    pub(super) fn merged_zone(&self) -> ZoneMapEntry<'_> {
        self.merged.zone()
    }

    /// Calls `ask` with the zone-map entry of a shard of `rows` rows that has the column.
    pub(super) fn with_zone<R>(&self, shard: usize, rows: u64, ask: impl FnOnce(&ZoneMapEntry<'_>) -> R) -> R {
        let flags = self.flags.get(shard);
        let has = |flag| flags & flag != 0;
        let (min, max) =
            (has(FLAG_HAS_MIN).then(|| self.bounds.min(shard)), has(FLAG_HAS_MAX).then(|| self.bounds.max(shard)));
        let nulls = (!has(FLAG_NULLS_GUESSED)).then(|| self.nulls.get(shard));
        ask(&ZoneMapEntry { rows, nulls, min: min.as_ref(), max: max.as_ref(), exact: has(FLAG_BOUNDS_EXACT) })
    }

    /// Removes shards in which certainly no row passes the test. All shards must have the column. A quick check by
    /// bounds, which leaves few shards to the exact test.
    pub(super) fn filter(&self, test: &Test, chosen: &mut ShardSet) {
        match test {
            Test::IsNull if !self.has_unknown_nulls => self.nulls.retain_at_least(1, chosen),
            Test::IsNull => {}
            test => {
                if let Some(reach) = ValueRange::from_test(test) {
                    self.bounds.filter(&reach, chosen);
                }
            }
        }
    }

    /// Returns the heap size in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let numbers = [&self.flags, &self.nulls, &self.average_run, &self.bytes, &self.distinct];
        numbers.into_iter().map(PackedNumbers::heap_bytes).sum::<usize>() + self.bounds.heap_bytes()
    }
}

impl MergedZone {
    fn zone(&self) -> ZoneMapEntry<'_> {
        ZoneMapEntry {
            rows: self.rows,
            nulls: self.nulls,
            min: self.min.as_ref(),
            max: self.max.as_ref(),
            exact: self.bounds_exact,
        }
    }

    /// Merges the statistics of shards, given with their numbers of rows.
    fn merge(&mut self, shards: &[(u64, &ColumnStats)]) {
        let (mut least, mut greatest) = (OutermostBound::Empty, OutermostBound::Empty);
        for &(rows, stats) in shards {
            let nulls = (!stats.nulls_guessed && stats.nulls <= rows).then_some(stats.nulls);
            self.rows += rows;
            self.nulls = self.nulls.zip(nulls).map(|(all, nulls)| all + nulls);
            // Shards with NULLs only have no bounds to merge.
            if are_all_null(rows, stats) {
                continue;
            }
            least = least.extend(stats.min.as_ref(), Ordering::Less);
            greatest = greatest.extend(stats.max.as_ref(), Ordering::Greater);
            self.bounds_exact &= stats.bounds_exact;
        }
        (self.min, self.max) = (least.value(), greatest.value());
    }
}

/// Returns true if all values are certainly NULL, whatever the bounds say.
fn are_all_null(rows: u64, stats: &ColumnStats) -> bool {
    !stats.nulls_guessed && stats.nulls == rows
}

/// Outermost bound of the shards so far.
#[derive(Clone, Copy)]
enum OutermostBound<'a> {
    /// No shard had values yet.
    Empty,
    /// Outermost bound.
    Bounded(&'a Datum),
    /// Some shard has no bound, or one of another type.
    Unknown,
}

impl<'a> OutermostBound<'a> {
    /// Extends the bound by that of another shard; `further` is the direction.
    fn extend(self, other: Option<&'a Datum>, further: Ordering) -> Self {
        let Some(other) = other else { return Self::Unknown };
        match self {
            Self::Empty => Self::Bounded(other),
            Self::Unknown => Self::Unknown,
            Self::Bounded(known) => match other.compare(known) {
                Some(ordering) => Self::Bounded(if ordering == further { other } else { known }),
                // The column changed its type between the shards.
                None => Self::Unknown,
            },
        }
    }

    fn value(self) -> Option<Datum> {
        match self {
            Self::Bounded(value) => Some(value.clone()),
            Self::Empty | Self::Unknown => None,
        }
    }
}

fn column_flags(stats: &ColumnStats) -> u64 {
    let flags = [
        (FLAG_HAS_MIN, stats.min.is_some()),
        (FLAG_HAS_MAX, stats.max.is_some()),
        (FLAG_BOUNDS_EXACT, stats.bounds_exact),
        (FLAG_NULLS_GUESSED, stats.nulls_guessed),
        (FLAG_ASCENDING, stats.ascending),
        (FLAG_STRICTLY_ASCENDING, stats.strictly_ascending),
    ];
    flags.into_iter().filter(|(_, is_so)| *is_so).fold(FLAG_HAS_COLUMN, |flags, (flag, _)| flags | flag)
}
