//! Digest of what a pipeline computes from a scan, independent of names and numbers of columns and of the order of
//! conditions.

use engine::aggregate::{AggregateSpec, StateSpec};
use engine::expression::Expression;
use engine::pipeline::Step;
use engine::{Digest, Digesting};
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
    let columns = scan.scan.columns.iter().map(column).collect::<Option<Vec<_>>>()?;
    // The scan prunes shards by these predicates. The filters are mostly the same conditions.
    let predicates = scan.scan.predicates.iter().map(predicate).collect::<Option<Vec<_>>>()?;
    let predicates = set("predicates", predicates);
    let conditions = filters.iter().map(|filter| &filter.condition);
    Some(Digesting::new("scan").with(predicates).with(of_steps(columns, conditions, steps, spec)?).end())
}

/// Returns the digest for rows with these columns.
pub(super) fn of_steps<'a>(
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
            known.push(Digesting::new("condition").with(times).with(part).end());
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
            Step::Project(expressions) => columns = projected(expressions, &columns),
            Step::Repeat(lists) => {
                let width = lists.first()?.len();
                let lists: Vec<Vec<Option<Digest>>> = lists.iter().map(|list| projected(list, &columns)).collect();
                columns = (0..width).map(|column| repeated(&lists, column)).collect();
                times += 1;
            }
            Step::Probe { .. } | Step::Limit { .. } => return None,
        }
    }
    let known = set("conditions", known);
    let of = |column: usize| columns.get(column).copied().flatten();
    let keys = spec.keys.iter().map(|key| of(*key)).collect::<Option<Vec<_>>>()?;
    let state = |state: &StateSpec| {
        let of_some = |column: Option<usize>| match column {
            Some(column) => of(column).map(Some),
            None => Some(None),
        };
        Some((state.kept, of_some(state.column)?, of_some(state.filter)?))
    };
    let states = spec.states.iter().map(state).collect::<Option<Vec<_>>>()?;
    Some(Digesting::new("groups").with(times).with(known).with(keys).with(states).end())
}

fn projected(expressions: &[Expression], columns: &[Option<Digest>]) -> Vec<Option<Digest>> {
    let of = |expression: &Expression| expression.is_immutable().then(|| expression.digest(columns)).flatten();
    expressions.iter().map(of).collect()
}

fn repeated(lists: &[Vec<Option<Digest>>], column: usize) -> Option<Digest> {
    let times = lists.iter().map(|list| list.get(column).copied().flatten()).collect::<Option<Vec<_>>>()?;
    Some(Digesting::new("repeat").with(times).end())
}

/// Returns the digest of a stored column by its id; `None` for positions and row ids, which are not stored in the
/// shard.
fn column(column: &ColumnDef) -> Option<Digest> {
    let is_own = column.id != ORDINAL_COLUMN && column.id != ROW_ID_COLUMN;
    is_own.then(|| stored("column", &(column.id, &column.sql_type, &column.missing))).flatten()
}

fn predicate(predicate: &Predicate) -> Option<Digest> {
    Some(Digesting::new("predicate").with(predicate.column).with(test(&predicate.test)?).end())
}

/// Returns the digest of a test, independent of the order of its parts.
fn test(of: &Test) -> Option<Digest> {
    let all = |tests: &[Test]| tests.iter().map(test).collect::<Option<Vec<_>>>();
    Some(match of {
        Test::In(values) => set("in", values.iter().map(|value| stored("value", value)).collect::<Option<Vec<_>>>()?),
        Test::All(tests) => set("all", all(tests)?),
        Test::Any(tests) => set("any", all(tests)?),
        one => stored("test", one)?,
    })
}

fn set(kind: &str, mut parts: Vec<Digest>) -> Digest {
    parts.sort_unstable();
    parts.dedup();
    Digesting::new(kind).with(parts).end()
}

/// Returns the digest of a serializable value.
fn stored(kind: &str, what: &impl Serialize) -> Option<Digest> {
    Some(Digest::of_bytes(kind, &rmp_serde::to_vec(what).ok()?))
}
