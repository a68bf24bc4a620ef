//! Wrapper of DataFusion's rule `single_distinct_aggregation_to_group_by` that keeps it from changing the type of sums.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::datafusion_rules::RuleKind;
use plan::StandardAggregate;

/// DataFusion's rule `single_distinct_aggregation_to_group_by`, except for aggregates with a sum that is not DISTINCT.
///
/// The rule adds up the sums of groups, but a sum of `integer` is a `bigint`, and a sum of `bigint` is a `numeric`.
#[derive(Debug)]
pub(super) struct SingleDistinctWithoutSums {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl SingleDistinctWithoutSums {
    /// Wraps `rule` if it is `single_distinct_aggregation_to_group_by`; returns other rules unchanged.
    pub(super) fn wrap(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if RuleKind::SingleDistinctToGroupBy.matches(rule.as_ref()) { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for SingleDistinctWithoutSums {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if has_plain_sum(aggregate) => Ok(Transformed::no(plan)),
            _ => self.rule.rewrite(plan, config),
        }
    }
}

fn has_plain_sum(aggregate: &Aggregate) -> bool {
    aggregate.aggr_expr.iter().any(|call| match call.clone().unalias() {
        Expr::AggregateFunction(call) => {
            StandardAggregate::from_function(&call.func) == Some(StandardAggregate::Sum) && !call.params.distinct
        }
        _ => false,
    })
}
