//! Cardinality estimation: rows of a plan and statistics of its columns, from the catalog's statistics and samples.
//!
//! Estimates choose between equivalent plans; the correctness of a rewrite never depends on them. Start at
//! [`estimate_relation`]:
//!
//! - `scan.rs` estimates tables from catalog statistics, `sample_filter.rs` evaluates filters on a table's sample,
//! - `predicate.rs` estimates selectivities of conditions,
//! - `join.rs` estimates joins, `grouping.rs` aggregates and DISTINCT,
//! - `node_estimates.rs` records the estimates of all nodes of a plan.

mod grouping;
mod join;
mod node_estimates;
mod predicate;
mod sample_filter;
mod scan;

#[cfg(test)]
mod tests;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Distinct, Expr, FetchType, LogicalPlan, SkipType};
use plan::estimate::{ColumnEstimate, RelationEstimate, UNKNOWN_ROWS};

pub(crate) use self::grouping::group_count;
pub(crate) use self::join::{
    FILTER_SELECTIVITY, SideKeys, anti_join_selectivity, common_range_share, composite_selectivity, match_selectivity,
    semi_join_selectivity,
};
pub(crate) use self::node_estimates::NodeEstimates;

/// Estimates the rows and columns of `plan`.
pub(crate) fn estimate_relation(plan: &LogicalPlan) -> RelationEstimate {
    estimate_recording(plan, &mut NodeEstimates::default())
}

/// Estimates the rows and columns of `plan`, and records the rows of each of its nodes in `noted`.
fn estimate_recording(plan: &LogicalPlan, noted: &mut NodeEstimates) -> RelationEstimate {
    let relation = match plan {
        LogicalPlan::TableScan(scan) => scan::estimate_scan(scan),
        LogicalPlan::Filter(filter) => estimate_filter(&filter.input, &filter.predicate, noted),
        LogicalPlan::Projection(projection) => {
            let input = estimate_recording(&projection.input, noted);
            let schema = projection.input.schema();
            let columns = projection.expr.iter().map(|expr| input.expression_estimate(expr, schema)).collect();
            RelationEstimate { rows: input.rows, columns }
        }
        LogicalPlan::Join(join) => join::estimate_join(join, noted),
        LogicalPlan::Aggregate(aggregate) => grouping::estimate_aggregate(aggregate, noted),
        LogicalPlan::Distinct(Distinct::All(input)) => grouping::estimate_distinct(input, noted),
        LogicalPlan::Distinct(Distinct::On(on)) => {
            RelationEstimate::unknown(plan, estimate_recording(&on.input, noted).rows)
        }
        LogicalPlan::Union(union) => {
            let inputs: Vec<RelationEstimate> =
                union.inputs.iter().map(|input| estimate_recording(input, noted)).collect();
            RelationEstimate {
                rows: inputs.iter().map(|input| input.rows).sum(),
                columns: (0..plan.schema().fields().len())
                    .map(|index| ColumnEstimate::union(inputs.iter().filter_map(|input| input.columns.get(index))))
                    .collect(),
            }
        }
        LogicalPlan::Limit(limit) => {
            let input = estimate_recording(&limit.input, noted);
            let rows = match (limit.get_skip_type(), limit.get_fetch_type()) {
                (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(Some(fetch)))) => {
                    (input.rows - skip as f64).clamp(0.0, fetch as f64)
                }
                _ => input.rows,
            };
            input.with_rows(rows)
        }
        LogicalPlan::Values(values) => RelationEstimate::unknown(plan, values.values.len() as f64),
        LogicalPlan::EmptyRelation(empty) => {
            RelationEstimate::unknown(plan, f64::from(u8::from(empty.produce_one_row)))
        }
        LogicalPlan::Subquery(subquery) => estimate_recording(&subquery.subquery, noted),
        other => match other.inputs().as_slice() {
            // Sort, SubqueryAlias, Repartition, Window: as many rows as the input, whose columns come first.
            [input] => estimate_recording(input, noted),
            inputs => {
                let rows = inputs.iter().map(|input| estimate_recording(input, noted).rows);
                let rows = rows.fold(f64::NAN, f64::max);
                RelationEstimate::unknown(plan, if rows.is_nan() { UNKNOWN_ROWS } else { rows })
            }
        },
    };
    let relation = relation.with_width(plan);
    noted.record(plan, relation.rows);
    relation
}

/// Estimates a filter. Right above a scan it is evaluated on the table's sample; elsewhere its selectivity is estimated
/// from column statistics.
fn estimate_filter(input: &LogicalPlan, predicate: &Expr, noted: &mut NodeEstimates) -> RelationEstimate {
    let known = match input {
        LogicalPlan::TableScan(scan) => scan::cached_filter_estimate(scan, predicate, |all, schema| {
            apply_filter(all, schema, predicate, sample_filter::evaluate_on_sample(scan, predicate))
        }),
        _ => None,
    };
    known.unwrap_or_else(|| apply_filter(estimate_recording(input, noted), input.schema(), predicate, None))
}

/// Estimates the rows of `relation` that pass `predicate`; `tried` is the predicate's result on the sample.
fn apply_filter(
    relation: RelationEstimate,
    schema: &DFSchema,
    predicate: &Expr,
    tried: Option<sample_filter::SampleResult>,
) -> RelationEstimate {
    let guessed = predicate::selectivity(predicate, &relation, schema);
    let selectivity = tried.as_ref().map_or(guessed, |tried| tried.selectivity(guessed));
    let Some(tried) = tried else { return predicate::apply(relation, predicate, schema, selectivity) };
    let mut kept = predicate::apply(relation.clone(), predicate, schema, selectivity);
    tried.narrow_bounds(&mut kept, &relation, schema);
    kept
}
