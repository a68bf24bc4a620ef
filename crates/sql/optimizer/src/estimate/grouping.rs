//! Estimates for aggregates and DISTINCT: the number of groups.

use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan};
use plan::estimate::{ColumnEstimate, RelationEstimate};

use super::{NodeEstimates, estimate_recording};

/// Estimates an aggregate: one row per group, keys first.
pub(super) fn estimate_aggregate(aggregate: &Aggregate, noted: &mut NodeEstimates) -> RelationEstimate {
    let input = estimate_recording(&aggregate.input, noted);
    let schema = aggregate.input.schema();
    let keys: Vec<&Expr> = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(set)] => set.distinct_expr(),
        keys => keys.iter().collect(),
    };
    let facts: Vec<ColumnEstimate> = keys.iter().map(|key| input.expression_estimate(key, schema)).collect();
    let sets = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.len(),
        [Expr::GroupingSet(GroupingSet::Rollup(keys))] => keys.len() + 1,
        [Expr::GroupingSet(GroupingSet::Cube(keys))] => 1 << keys.len().min(10),
        _ => 1,
    };
    // The finest grouping set has most of the groups.
    let rows = group_count(&facts, input.rows) * if sets == 1 { 1.0 } else { 1.5 };
    let mut columns: Vec<ColumnEstimate> = facts.into_iter().map(|facts| after_grouping(facts, rows)).collect();
    columns.resize(aggregate.schema.fields().len(), ColumnEstimate::unknown(rows));
    RelationEstimate { rows, columns }
}

/// Estimates DISTINCT: one row per combination of values.
pub(super) fn estimate_distinct(input: &LogicalPlan, noted: &mut NodeEstimates) -> RelationEstimate {
    let input = estimate_recording(input, noted);
    let rows = group_count(&input.columns, input.rows);
    let columns = input.columns.into_iter().map(|facts| after_grouping(facts, rows)).collect();
    RelationEstimate { rows, columns }
}

/// Returns the estimated number of combinations of the keys' values in `rows` rows. Keys are usually correlated: in
/// descending order of distinct values, each key after the first counts with the square root of its distinct values.
pub(crate) fn group_count(keys: &[ColumnEstimate], rows: f64) -> f64 {
    let mut counts: Vec<f64> = keys.iter().map(|key| key.distinct + f64::from(u8::from(key.nulls > 0.0))).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let combinations: f64 =
        counts.iter().enumerate().map(|(index, count)| if index == 0 { *count } else { count.sqrt() }).product();
    combinations.min(rows).max(1.0)
}

fn after_grouping(mut facts: ColumnEstimate, rows: f64) -> ColumnEstimate {
    facts.distinct = facts.distinct.min(rows);
    facts.frequent = std::sync::Arc::new([]);
    facts
}
