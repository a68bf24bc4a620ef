//! Digest of what a pipeline computes from a scan, independent of names and numbers of columns and of the order of
//! conditions.

use engine::aggregate::{AggregateSpec, StateSpec};
use engine::expression::Expression;
use engine::pipeline::Step;
use engine::{Digest, DigestBuilder};
use scan::ShardScanExec;
use serde::Serialize;
use shards::{ColumnDef, ORDINAL_COLUMN, Predicate, ROW_ID_COLUMN, Test};

use crate::plan::ScanFilter;

/// Returns the digest of the groups that `spec` makes from a scan after filters and steps; `None` if they depend on
/// more than the scan's rows. Grouping sets are derived from groups, so they are not part of it.
pub(super) fn digest(
    scan: &ShardScanExec,
    filters: &[ScanFilter],
    steps: &[Step],
    spec: &AggregateSpec,
) -> Option<Digest> {
    let columns = scan.scan.columns.iter().map(column_digest).collect::<Option<Vec<_>>>()?;
    // The scan prunes shards by these predicates. The filters are mostly the same conditions.
    let predicates = scan.scan.predicates.iter().map(predicate_digest).collect::<Option<Vec<_>>>()?;
    let predicates = set_digest("predicates", predicates);
    let conditions = filters.iter().map(|filter| &filter.condition);
    Some(DigestBuilder::new("scan").with(predicates).with(steps_digest(columns, conditions, steps, spec)?).finish())
}

/// Returns the digest for rows with these columns.
pub(super) fn steps_digest<'a>(
    columns: Vec<Digest>,
    conditions: impl Iterator<Item = &'a Expression>,
    steps: &[Step],
    spec: &AggregateSpec,
) -> Option<Digest> {
    let mut columns: Vec<Option<Digest>> = columns.into_iter().map(Some).collect();
    let mut known = Vec::new();
    // Rows that are repeated may pass a condition some of the times only.
    let mut times = 0_u64;
    let condition = |condition: &Expression, columns: &[Option<Digest>], times: u64, known: &mut Vec<Digest>| {
        for part in condition.conjuncts() {
            let part = part.is_immutable().then(|| part.digest(columns)).flatten()?;
            known.push(DigestBuilder::new("condition").with(times).with(part).finish());
        }
        Some(())
    };
    for part in conditions {
        condition(part, &columns, times, &mut known)?;
    }
    for step in steps {
        match step {
            Step::Filter(parts) => {
                for part in parts {
                    condition(part, &columns, times, &mut known)?;
                }
            }
            Step::Project(expressions) => columns = project_digests(expressions, &columns),
            Step::Expand(lists) => {
                let width = lists.first()?.len();
                let lists: Vec<Vec<Option<Digest>>> =
                    lists.iter().map(|list| project_digests(list, &columns)).collect();
                columns = (0..width).map(|column| repeated_digest(&lists, column)).collect();
                times += 1;
            }
            Step::Probe { .. } | Step::Limit { .. } => return None,
        }
    }
    let known = set_digest("conditions", known);
    let of = |column: usize| columns.get(column).copied().flatten();
    let keys = spec.keys.iter().map(|key| of(*key)).collect::<Option<Vec<_>>>()?;
    let state = |state: &StateSpec| {
        let of_some = |column: Option<usize>| match column {
            Some(column) => of(column).map(Some),
            None => Some(None),
        };
        Some((state.kind, of_some(state.column)?, of_some(state.filter)?))
    };
    let states = spec.states.iter().map(state).collect::<Option<Vec<_>>>()?;
    Some(DigestBuilder::new("groups").with(times).with(known).with(keys).with(states).finish())
}

fn project_digests(expressions: &[Expression], columns: &[Option<Digest>]) -> Vec<Option<Digest>> {
    let of = |expression: &Expression| expression.is_immutable().then(|| expression.digest(columns)).flatten();
    expressions.iter().map(of).collect()
}

fn repeated_digest(lists: &[Vec<Option<Digest>>], column: usize) -> Option<Digest> {
    let times = lists.iter().map(|list| list.get(column).copied().flatten()).collect::<Option<Vec<_>>>()?;
    Some(DigestBuilder::new("repeat").with(times).finish())
}

/// Returns the digest of a stored column by its id; `None` for positions and row ids, which are not stored in the
/// shard.
fn column_digest(column: &ColumnDef) -> Option<Digest> {
    let is_own = column.id != ORDINAL_COLUMN && column.id != ROW_ID_COLUMN;
    is_own.then(|| serialized_digest("column", &(column.id, &column.sql_type, &column.missing))).flatten()
}

fn predicate_digest(predicate: &Predicate) -> Option<Digest> {
    Some(DigestBuilder::new("predicate").with(predicate.column).with(test_digest(&predicate.test)?).finish())
}

/// Returns the digest of a test, independent of the order of its parts.
fn test_digest(of: &Test) -> Option<Digest> {
    let all = |tests: &[Test]| tests.iter().map(test_digest).collect::<Option<Vec<_>>>();
    Some(match of {
        Test::In(values) => {
            set_digest("in", values.iter().map(|value| serialized_digest("value", value)).collect::<Option<Vec<_>>>()?)
        }
        Test::All(tests) => set_digest("all", all(tests)?),
        Test::Any(tests) => set_digest("any", all(tests)?),
        one => serialized_digest("test", one)?,
    })
}

fn set_digest(kind: &str, mut parts: Vec<Digest>) -> Digest {
    parts.sort_unstable();
    parts.dedup();
    DigestBuilder::new(kind).with(parts).finish()
}

/// Returns the digest of a serializable value.
fn serialized_digest(kind: &str, what: &impl Serialize) -> Option<Digest> {
    Some(Digest::from_bytes(kind, &rmp_serde::to_vec(what).ok()?))
}
