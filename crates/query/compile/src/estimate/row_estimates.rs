//! Matches the optimizer's row estimates with physical operators, by walking logical and physical plan in parallel as
//! far as their shapes agree.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use operators::SharedScanExec;
use optimizer::{EstimatedNodeKind, RowEstimate};
use scan::ShardScanExec;

use super::shown_operators::ShownOperators;
use crate::plan::OperatorId;

/// Returns the estimated rows of the operators that match a part of the logical plan.
pub fn expected_rows(
    plan: &RowEstimate,
    root: &Arc<dyn ExecutionPlan>,
    operators: &ShownOperators,
) -> HashMap<OperatorId, f64> {
    let mut matching = PlanMatcher { operators, rows: HashMap::new() };
    matching.match_operator(plan, root);
    matching.rows
}

/// State of the walk.
struct PlanMatcher<'a> {
    operators: &'a ShownOperators,
    rows: HashMap<OperatorId, f64>,
}

impl PlanMatcher<'_> {
    fn match_operator(&mut self, part: &RowEstimate, operator: &Arc<dyn ExecutionPlan>) {
        let operator = self.operators.shown(operator);
        let own = OperatorId::new(operator.as_ref());
        match logical_kind(operator.as_ref()) {
            Some(does) if does == part.kind => {
                self.rows.insert(own, part.rows);
                let inputs = inputs(operator);
                if inputs.len() == part.inputs.len() {
                    inputs.into_iter().zip(&part.inputs).for_each(|(input, part)| self.match_operator(part, input));
                }
            }
            // The operator below has taken over the condition.
            Some(_) if part.kind == EstimatedNodeKind::Filter => {
                part.inputs.iter().for_each(|input| self.match_operator(input, operator));
                self.rows.entry(own).and_modify(|rows| *rows = rows.min(part.rows));
            }
            // An operator that the logical plan does not have, or that changes no row count.
            Some(EstimatedNodeKind::Filter) | None => {
                if let [input] = inputs(operator).as_slice() {
                    self.match_operator(part, input);
                }
            }
            Some(_) => {}
        }
    }
}

/// Returns the kind of logical operator that a physical one implements; `None` for those without a counterpart.
fn logical_kind(operator: &dyn ExecutionPlan) -> Option<EstimatedNodeKind> {
    if operator.is::<ShardScanExec>() || operator.is::<SharedScanExec>() {
        return Some(EstimatedNodeKind::Scan);
    }
    if operator.is::<FilterExec>() {
        return Some(EstimatedNodeKind::Filter);
    }
    if operator.is::<HashJoinExec>()
        || operator.is::<NestedLoopJoinExec>()
        || operator.is::<CrossJoinExec>()
        || operator.is::<SortMergeJoinExec>()
    {
        return Some(EstimatedNodeKind::Join);
    }
    if operator.is::<UnionExec>() || operator.is::<InterleaveExec>() {
        return Some(EstimatedNodeKind::Union);
    }
    let aggregate = operator.downcast_ref::<AggregateExec>()?;
    let is_last = !matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::PartialReduce);
    is_last.then_some(EstimatedNodeKind::Aggregate)
}

/// Returns the inputs of an operator; for shared rows, the operators that compute them.
fn inputs(operator: &Arc<dyn ExecutionPlan>) -> Vec<&Arc<dyn ExecutionPlan>> {
    if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
        return vec![shared.rows().operators()];
    }
    match operator.downcast_ref::<ScalarSubqueryExec>() {
        Some(subqueries) => vec![subqueries.input()],
        None => operator.children(),
    }
}
