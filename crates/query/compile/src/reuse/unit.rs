//! What of a shard a scan reads: the rows that groups are kept of.
//!
//! That is all of the scan's parts of the shard, mostly the whole shard: of fewer rows there would be more results to look for and to put together, and of
//! more rows one deletion would take more away. On one of several workers it is the parts that are the worker's.

use datafusion::physical_plan::ExecutionPlan;
use engine::aggregate::{AggregateSpec, Groups};
use engine::expression::Expression;
use engine::pipeline::Step;
use engine::{Digest, Digesting};
use roaring::RoaringBitmap;
use scan::{Part, ScanShard, ShardScanExec, predicates};
use shards::{Datum, ResultKey};
use types::ShardId;

/// Scans of fewer settled rows are read again as soon as anything is found.
const SCAN_ROWS_MIN: u64 = 1_024;
/// And those whose shards have fewer, on average.
const SHARD_ROWS_MIN: u64 = 256;
/// Groups for which so many rows are read are few.
const ROWS_OF_GROUP: usize = 64;
/// So many always are.
const GROUPS_FEW: usize = 64;

/// The parts of a shard that a scan reads.
#[derive(Debug)]
pub(super) struct Unit {
    shard: ShardId,
    /// Where rows begin and end, by row groups, neighbours together; none where it is all rows.
    ranges: Vec<(usize, usize, usize)>,
    /// Of the rows that are not to be seen.
    deleted: Option<Digest>,
    pub(super) parts: usize,
    rows: usize,
}

/// The units of a scan, by the shards' positions.
pub(super) fn units(scan: &ShardScanExec) -> Vec<Unit> {
    let unit = |shard: &ScanShard| Unit {
        shard: shard.meta.id,
        ranges: Vec::new(),
        deleted: shard.deleted.as_deref().filter(|deleted| !deleted.is_empty()).map(mask),
        parts: 0,
        rows: 0,
    };
    let mut units: Vec<Unit> = scan.scan.shards.iter().map(unit).collect();
    for part in scan.parts() {
        let Part::Settled { shard, row_group, rows } = part else { continue };
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

impl Unit {
    /// Where the groups are kept that something makes of it.
    pub(super) fn key(&self, fragment: &Digest) -> ResultKey {
        let all = Digesting::new("unit").with(fragment).with(&self.ranges).with(self.deleted);
        ResultKey { shard: self.shard, digest: *all.end().bytes() }
    }

    /// Whether groups are too many for their rows to be kept.
    pub(super) fn are_many(&self, groups: &Groups) -> bool {
        groups.is_aside() || few(self.rows) < groups.len()
    }
}

/// Whether there is enough to read that it is worth asking.
pub(super) fn is_worth(scan: &ShardScanExec) -> bool {
    // What is known of other operators' rows leaves groups out that others want. A filter that says nothing yet is not waited for.
    if scan.fetch().is_some() || !scan.dynamic().iter().all(predicates::passes_all) {
        return false;
    }
    let shards = &scan.scan.shards;
    let rows: u64 = shards.iter().map(|shard| shard.meta.rows).sum();
    SCAN_ROWS_MIN <= rows && SHARD_ROWS_MIN * shards.len() as u64 <= rows
}

/// Whether there are few groups, as far as the shards' statistics say, where they could go on before all are known: they cannot if they are kept.
pub(super) fn few_of_clustered(scan: &ShardScanExec, spec: &AggregateSpec, steps: &[Step]) -> bool {
    let Some(key) = spec.clustered else { return true };
    let Some(column) = spec.keys.get(key).and_then(|key| source(steps, *key)) else { return false };
    let Some(column) = scan.scan.columns.get(column) else { return false };
    // A filter that grows stricter meanwhile would leave out more.
    scan.dynamic().is_empty()
        && scan.scan.shards.iter().all(|shard| {
            let Some(stats) = shard.meta.column(column.id) else { return true };
            let range = match (&stats.min, &stats.max) {
                (Some(Datum::Int(min)), Some(Datum::Int(max))) => max.abs_diff(*min),
                _ => u64::MAX,
            };
            let most = usize::try_from(shard.meta.rows).map_or(usize::MAX, few) as u64;
            range < most || (0 < stats.distinct.estimate() && stats.distinct.estimate() <= most)
        })
}

/// The column of the source that a column is after some steps.
fn source(steps: &[Step], column: usize) -> Option<usize> {
    steps.iter().rev().try_fold(column, |column, step| match step {
        Step::Filter(_) => Some(column),
        Step::Project(expressions) => match expressions.get(column)? {
            Expression::Column(at) => Some(*at),
            _ => None,
        },
        _ => None,
    })
}

/// How many groups of so many rows are few.
fn few(rows: usize) -> usize {
    GROUPS_FEW.max(rows / ROWS_OF_GROUP)
}

fn mask(deleted: &RoaringBitmap) -> Digest {
    let mut bytes = Vec::with_capacity(deleted.serialized_size());
    deleted.serialize_into(&mut bytes).expect("a vector takes all bytes");
    Digest::of_bytes("deleted", &bytes)
}
