//! One DISTINCT aggregate as a grouping, where nothing is summed beside it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// DataFusion's rule sums the sums of the groups, but a sum of `integer` is a `bigint`, and a sum of these a `numeric`.
#[derive(Debug)]
pub(super) struct DistinctWithoutSums {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl DistinctWithoutSums {
    /// `rule`, with care taken if it is the one.
    pub(super) fn instead_of(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if rule.name() == "single_distinct_aggregation_to_group_by" { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for DistinctWithoutSums {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if sums(aggregate) => Ok(Transformed::no(plan)),
            _ => self.rule.rewrite(plan, config),
        }
    }
}

fn sums(aggregate: &Aggregate) -> bool {
    aggregate.aggr_expr.iter().any(|call| match call.clone().unalias() {
        Expr::AggregateFunction(call) => call.func.name() == "sum" && !call.params.distinct,
        _ => false,
    })
}
