//! Unit of caching: the rows of one shard that a scan reads.
//!
//! It consists of all parts of the shard in the scan, mostly the whole shard. Smaller units would mean more results to
//! look up and merge; larger ones would lose more to one deletion. On one of several workers it consists of the parts
//! that the worker owns.

use datafusion::physical_plan::ExecutionPlan;
use engine::aggregate::{AggregateSpec, Groups};
use engine::expression::Expression;
use engine::pipeline::Step;
use engine::{Digest, DigestBuilder};
use roaring::RoaringBitmap;
use scan::{Part, ScanShard, ShardScanExec, predicates};
use shards::{Datum, ResultKey};
use types::ShardId;

/// Flushed rows of a scan from which the cache is used; smaller scans are as fast as a lookup.
const SCAN_ROWS_MIN: u64 = 1_024;
/// Average rows of its shards from which the cache is used.
const SHARD_ROWS_MIN: u64 = 256;
/// Rows per group from which groups are few enough to be cached.
const ROWS_PER_GROUP_MIN: usize = 64;
/// Number of groups that is always few enough.
const ALWAYS_CACHED_GROUPS: usize = 64;

/// Rows of a shard that a scan reads.
#[derive(Debug)]
pub(super) struct ShardUnit {
    shard: ShardId,
    /// Row ranges by row group, with neighbours merged; empty for all rows.
    ranges: Vec<(usize, usize, usize)>,
    /// Digest of the deleted rows.
    deleted: Option<Digest>,
    pub(super) parts: usize,
    rows: usize,
}

/// Returns the units of a scan, by shard position.
pub(super) fn units(scan: &ShardScanExec) -> Vec<ShardUnit> {
    let unit = |shard: &ScanShard| ShardUnit {
        shard: shard.meta.id,
        ranges: Vec::new(),
        deleted: shard.deleted.as_deref().filter(|deleted| !deleted.is_empty()).map(deletion_digest),
        parts: 0,
        rows: 0,
    };
    let mut units: Vec<ShardUnit> = scan.scan.shards.iter().map(unit).collect();
    for part in scan.parts() {
        let Part::Flushed { shard, row_group, rows } = part else { continue };
        let unit = &mut units[*shard];
        unit.parts += 1;
        unit.rows += rows.len();
        match unit.ranges.last_mut() {
            Some((last, _, end)) if last == row_group && *end == rows.start => *end = rows.end,
            _ => unit.ranges.push((*row_group, rows.start, rows.end)),
        }
    }
    for (unit, shard) in units.iter_mut().zip(&scan.scan.shards) {
        if unit.rows as u64 == shard.meta.rows {
            unit.ranges.clear();
        }
    }
    units
}

impl ShardUnit {
    /// Returns the cache key for the result of a computation on the unit.
    pub(super) fn key(&self, fragment: &Digest) -> ResultKey {
        let all = DigestBuilder::new("unit").with(fragment).with(&self.ranges).with(self.deleted);
        ResultKey { shard: self.shard, digest: *all.finish().bytes() }
    }

    /// Returns whether groups are too many to be cached for their rows.
    pub(super) fn has_too_many_groups(&self, groups: &Groups) -> bool {
        groups.has_flushed() || few_groups_max(self.rows) < groups.len()
    }
}

/// Returns whether a scan reads enough for the cache to pay, and reads it independently of other operators.
pub(super) fn is_worth_caching(scan: &ShardScanExec) -> bool {
    // Dynamic filters remove groups that other queries need. A filter without a bound so far is accepted.
    if scan.fetch().is_some() || !scan.dynamic_filters().iter().all(predicates::passes_all) {
        return false;
    }
    let shards = &scan.scan.shards;
    let rows: u64 = shards.iter().map(|shard| shard.meta.rows).sum();
    SCAN_ROWS_MIN <= rows && SHARD_ROWS_MIN * shards.len() as u64 <= rows
}

/// Returns whether statistics predict few groups. Required where complete groups could leave early, which caching
/// prevents.
pub(super) fn expects_few_groups(scan: &ShardScanExec, spec: &AggregateSpec, steps: &[Step]) -> bool {
    let Some(key) = spec.clustered else { return true };
    let Some(column) = spec.keys.get(key).and_then(|key| source_column(steps, *key)) else { return false };
    let Some(column) = scan.scan.columns.get(column) else { return false };
    // A dynamic filter that tightens during the scan would remove more.
    scan.dynamic_filters().is_empty()
        && scan.scan.shards.iter().all(|shard| {
            let Some(stats) = shard.meta.column(column.id) else { return true };
            let range = match (&stats.min, &stats.max) {
                (Some(Datum::Int(min)), Some(Datum::Int(max))) => max.abs_diff(*min),
                _ => u64::MAX,
            };
            let most = usize::try_from(shard.meta.rows).map_or(usize::MAX, few_groups_max) as u64;
            range < most || (0 < stats.distinct.estimate() && stats.distinct.estimate() <= most)
        })
}

/// Returns the source column that a column after some steps comes from.
fn source_column(steps: &[Step], column: usize) -> Option<usize> {
    steps.iter().rev().try_fold(column, |column, step| match step {
        Step::Filter(_) => Some(column),
        Step::Project(expressions) => match expressions.get(column)? {
            Expression::Column(at) => Some(*at),
            _ => None,
        },
        _ => None,
    })
}

/// Returns the number of groups up to which they are few for this many rows.
fn few_groups_max(rows: usize) -> usize {
    ALWAYS_CACHED_GROUPS.max(rows / ROWS_PER_GROUP_MIN)
}

fn deletion_digest(deleted: &RoaringBitmap) -> Digest {
    let mut bytes = Vec::with_capacity(deleted.serialized_size());
    deleted.serialize_into(&mut bytes).expect("writing to a vector returns no error");
    Digest::from_bytes("deleted", &bytes)
}
