//! Filters stay above projections below which they would be many times as large: each column is written as what it is computed from.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Nodes of a condition below a projection. From here on it is computed where it was written.
pub(super) const NODES_MAX: usize = 1_024;

/// DataFusion's rule that pushes filters down, for conditions that stay small. In a chain of queries that each compute and filter, the condition
/// of each has all computations below it when it comes to the scan: their nodes are the square of the chain's length, and to write them takes the cube.
#[derive(Debug)]
pub(super) struct FiltersOfBoundedSize {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl FiltersOfBoundedSize {
    /// `rule`, within bounds if it is the one.
    pub(super) fn instead_of(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if rule.name() == super::PUSH_DOWN { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for FiltersOfBoundedSize {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return self.rule.rewrite(plan, config) };
        let Some(below) = Computed::below(&filter) else {
            return self.rule.rewrite(LogicalPlan::Filter(filter), config);
        };
        let (small, grown) = below.divide(filter.predicate);
        let grown = conjunction(grown).expect("a condition that becomes larger has a part that does");
        let input = match conjunction(small) {
            Some(small) => {
                let small = LogicalPlan::Filter(Filter::try_new(small, filter.input)?);
                self.rule.rewrite(small, config)?.map_data(|plan| Ok(Arc::new(plan)))?
            }
            None => Transformed::no(filter.input),
        };
        input.map_data(|input| Filter::try_new(grown, input).map(LogicalPlan::Filter))
    }
}

/// How large the expressions are that the columns of an operator are computed from.
struct Computed(HashMap<Column, usize>);

impl Computed {
    /// Of what lies below a filter; `None` where the filter becomes no larger, or not too large, below it.
    fn below(filter: &Filter) -> Option<Self> {
        let (schema, exprs) = match filter.input.as_ref() {
            LogicalPlan::Projection(Projection { schema, expr, .. }) => (schema, expr),
            LogicalPlan::Aggregate(Aggregate { schema, group_expr, .. }) => (schema, group_expr),
            _ => return None,
        };
        let sizes: Vec<usize> = exprs.iter().map(nodes).collect();
        let largest = sizes.iter().copied().max().unwrap_or(1);
        if largest == 1 || nodes(&filter.predicate).saturating_mul(largest) <= NODES_MAX {
            return None;
        }
        let computed = Self(schema.columns().into_iter().zip(sizes).collect());
        let (own, grown) = computed.sizes(&filter.predicate);
        (own < grown && NODES_MAX < grown).then_some(computed)
    }

    /// The nodes of a condition above the operator, and below it.
    fn sizes(&self, condition: &Expr) -> (usize, usize) {
        let (mut own, mut grown) = (0_usize, 0_usize);
        let walked = condition.apply(|part| {
            own += 1;
            let known = if let Expr::Column(column) = part { self.0.get(column) } else { None };
            grown = grown.saturating_add(known.copied().unwrap_or(1));
            Ok(TreeNodeRecursion::Continue)
        });
        walked.expect("nothing fails on the way");
        (own, grown)
    }

    /// The parts of a condition that are no larger below the operator, and those that are.
    fn divide(&self, condition: Expr) -> (Vec<Expr>, Vec<Expr>) {
        split_conjunction_owned(condition).into_iter().partition(|part| {
            let (own, grown) = self.sizes(part);
            grown <= own
        })
    }
}

fn nodes(expr: &Expr) -> usize {
    let mut count = 0;
    let walked = expr.apply(|part| {
        count += usize::from(!matches!(part, Expr::Alias(_)));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("nothing fails on the way");
    count
}
