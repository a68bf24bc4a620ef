//! Wrapper of DataFusion's filter pushdown that leaves filters without columns above ungrouped aggregates, which give a
//! row even for an empty input.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::datafusion_rules::RuleKind;

/// DataFusion's rule `push_down_filter`, except for conditions without columns above grand totals.
///
/// The rule takes a condition without columns, such as `random() > 2`, for one on group keys and pushes it below.
#[derive(Debug)]
pub(super) struct FiltersAboveUngroupedAggregates {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl FiltersAboveUngroupedAggregates {
    /// Wraps `rule` if it is `push_down_filter`; returns other rules unchanged.
    pub(super) fn wrap(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if RuleKind::PushDownFilter.matches(rule.as_ref()) { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for FiltersAboveUngroupedAggregates {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Filter(filter) if is_above_ungrouped_aggregate(filter) => Ok(Transformed::no(plan)),
            _ => self.rule.rewrite(plan, config),
        }
    }
}

/// Returns whether a filter has a condition without columns and lies above an aggregate that may have a grand total.
fn is_above_ungrouped_aggregate(filter: &Filter) -> bool {
    let LogicalPlan::Aggregate(Aggregate { group_expr, .. }) = filter.input.as_ref() else { return false };
    let has_total = group_expr.is_empty() || matches!(group_expr.as_slice(), [Expr::GroupingSet(_)]);
    has_total && split_conjunction(&filter.predicate).into_iter().any(|condition| condition.column_refs().is_empty())
}
