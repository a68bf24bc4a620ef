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
use optimizer::{Expected, ExpectedOf};
use scan::ShardScanExec;

use super::operators::Operators;
use crate::plan::OperatorId;

/// Returns the estimated rows of the operators that match a part of the logical plan.
pub fn expected(plan: &Expected, root: &Arc<dyn ExecutionPlan>, operators: &Operators) -> HashMap<OperatorId, f64> {
    let mut matching = Matching { operators, rows: HashMap::new() };
    matching.operator(plan, root);
    matching.rows
}

/// State of the walk.
struct Matching<'a> {
    operators: &'a Operators,
    rows: HashMap<OperatorId, f64>,
}

impl Matching<'_> {
    fn operator(&mut self, part: &Expected, operator: &Arc<dyn ExecutionPlan>) {
        let operator = self.operators.shown(operator);
        let own = OperatorId::of(operator.as_ref());
        match does(operator.as_ref()) {
            Some(does) if does == part.of => {
                self.rows.insert(own, part.rows);
                let inputs = inputs(operator);
                if inputs.len() == part.inputs.len() {
                    inputs.into_iter().zip(&part.inputs).for_each(|(input, part)| self.operator(part, input));
                }
            }
            // The operator below has taken over the condition.
            Some(_) if part.of == ExpectedOf::Filter => {
                part.inputs.iter().for_each(|input| self.operator(input, operator));
                self.rows.entry(own).and_modify(|rows| *rows = rows.min(part.rows));
            }
            // An operator that the logical plan does not have, or that changes no row count.
            Some(ExpectedOf::Filter) | None => {
                if let [input] = inputs(operator).as_slice() {
                    self.operator(part, input);
                }
            }
            Some(_) => {}
        }
    }
}

/// Returns the kind of logical operator that a physical one implements; `None` for those without a counterpart.
fn does(operator: &dyn ExecutionPlan) -> Option<ExpectedOf> {
    if operator.is::<ShardScanExec>() || operator.is::<SharedScanExec>() {
        return Some(ExpectedOf::Scan);
    }
    if operator.is::<FilterExec>() {
        return Some(ExpectedOf::Filter);
    }
    if operator.is::<HashJoinExec>()
        || operator.is::<NestedLoopJoinExec>()
        || operator.is::<CrossJoinExec>()
        || operator.is::<SortMergeJoinExec>()
    {
        return Some(ExpectedOf::Join);
    }
    if operator.is::<UnionExec>() || operator.is::<InterleaveExec>() {
        return Some(ExpectedOf::Union);
    }
    let aggregate = operator.downcast_ref::<AggregateExec>()?;
    let is_last = !matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::PartialReduce);
    is_last.then_some(ExpectedOf::Groups)
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
