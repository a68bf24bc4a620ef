//! Cardinality estimation: rows of a plan and statistics of its columns, from the catalog's statistics and samples.
//!
//! Estimates choose between equivalent plans; the correctness of a rewrite never depends on them. Start at
//! [`relation_of`]:
//!
//! - `scan.rs` estimates tables from catalog statistics, `sample.rs` evaluates filters on a table's sample,
//! - `predicate.rs` estimates selectivities of conditions,
//! - `join.rs` estimates joins, `grouping.rs` aggregates and DISTINCT,
//! - `noted.rs` records the estimates of all nodes of a plan.

mod grouping;
mod join;
mod noted;
mod predicate;
mod sample;
mod scan;

#[cfg(test)]
mod tests;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Distinct, Expr, FetchType, LogicalPlan, SkipType};
use plan::estimate::{ColumnFacts, Relation, UNKNOWN_ROWS};

pub(crate) use self::grouping::groups;
pub(crate) use self::join::{
    FILTER, Keys, absence_share, composite_selectivity, existence_share, match_selectivity, share_in_common,
};
pub(crate) use self::noted::Noted;

/// Estimates the rows and columns of `plan`.
pub(crate) fn relation_of(plan: &LogicalPlan) -> Relation {
    noting(plan, &mut Noted::default())
}

/// Estimates the rows and columns of `plan`, and records the rows of each of its nodes in `noted`.
fn noting(plan: &LogicalPlan, noted: &mut Noted) -> Relation {
    let relation = match plan {
        LogicalPlan::TableScan(scan) => scan::relation(scan),
        LogicalPlan::Filter(filter) => filtered(&filter.input, &filter.predicate, noted),
        LogicalPlan::Projection(projection) => {
            let input = noting(&projection.input, noted);
            let schema = projection.input.schema();
            let columns = projection.expr.iter().map(|expr| input.facts(expr, schema)).collect();
            Relation { rows: input.rows, columns }
        }
        LogicalPlan::Join(join) => join::relation(join, noted),
        LogicalPlan::Aggregate(aggregate) => grouping::aggregate(aggregate, noted),
        LogicalPlan::Distinct(Distinct::All(input)) => grouping::distinct(input, noted),
        LogicalPlan::Distinct(Distinct::On(on)) => Relation::unknown(plan, noting(&on.input, noted).rows),
        LogicalPlan::Union(union) => {
            let inputs: Vec<Relation> = union.inputs.iter().map(|input| noting(input, noted)).collect();
            Relation {
                rows: inputs.iter().map(|input| input.rows).sum(),
                columns: (0..plan.schema().fields().len())
                    .map(|index| ColumnFacts::union(inputs.iter().filter_map(|input| input.columns.get(index))))
                    .collect(),
            }
        }
        LogicalPlan::Limit(limit) => {
            let input = noting(&limit.input, noted);
            let rows = match (limit.get_skip_type(), limit.get_fetch_type()) {
                (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(Some(fetch)))) => {
                    (input.rows - skip as f64).clamp(0.0, fetch as f64)
                }
                _ => input.rows,
            };
            input.with_rows(rows)
        }
        LogicalPlan::Values(values) => Relation::unknown(plan, values.values.len() as f64),
        LogicalPlan::EmptyRelation(empty) => Relation::unknown(plan, f64::from(u8::from(empty.produce_one_row))),
        LogicalPlan::Subquery(subquery) => noting(&subquery.subquery, noted),
        other => match other.inputs().as_slice() {
            // Sort, SubqueryAlias, Repartition, Window: as many rows as the input, whose columns come first.
            [input] => noting(input, noted),
            inputs => {
                let rows = inputs.iter().map(|input| noting(input, noted).rows);
                let rows = rows.fold(f64::NAN, f64::max);
                Relation::unknown(plan, if rows.is_nan() { UNKNOWN_ROWS } else { rows })
            }
        },
    };
    let relation = relation.with_width(plan);
    noted.add(plan, relation.rows);
    relation
}

/// Estimates a filter. Right above a scan it is evaluated on the table's sample; elsewhere its selectivity is estimated
/// from column statistics.
fn filtered(input: &LogicalPlan, predicate: &Expr, noted: &mut Noted) -> Relation {
    let known = match input {
        LogicalPlan::TableScan(scan) => scan::filtered(scan, predicate, |all, schema| {
            passing(all, schema, predicate, sample::try_filter(scan, predicate))
        }),
        _ => None,
    };
    known.unwrap_or_else(|| passing(noting(input, noted), input.schema(), predicate, None))
}

/// Estimates the rows of `relation` that pass `predicate`; `tried` is the predicate's result on the sample.
fn passing(relation: Relation, schema: &DFSchema, predicate: &Expr, tried: Option<sample::Tried>) -> Relation {
    let guessed = predicate::selectivity(predicate, &relation, schema);
    let selectivity = tried.as_ref().map_or(guessed, |tried| tried.selectivity(guessed));
    let Some(tried) = tried else { return predicate::apply(relation, predicate, schema, selectivity) };
    let mut kept = predicate::apply(relation.clone(), predicate, schema, selectivity);
    tried.narrow(&mut kept, &relation, schema);
    kept
}
