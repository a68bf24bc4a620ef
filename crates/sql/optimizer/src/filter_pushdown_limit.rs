//! Filter pushdown with a size limit: below a projection, each column in a filter is replaced by the column's
//! expression.
//!
//! In a chain of queries that each compute and filter, the filters at the scan would grow with the square of the
//! chain's length, or exponentially, and building them would take cubic time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::datafusion_rules::RuleKind;

/// Limit of expression nodes that conditions may have together below a projection, counting those that grow there.
pub const FILTER_NODES_MAX: usize = 1_024;

/// Size, in expression nodes, of conditions that are always pushed down.
const ALWAYS_PUSHED_NODES_MAX: usize = 32;

/// DataFusion's rule `push_down_filter`, except for conditions that would become too large below a projection or an
/// aggregate.
#[derive(Debug)]
pub(crate) struct BoundedFilterPushdown {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl BoundedFilterPushdown {
    /// Wraps `rule` if it is `push_down_filter`; returns other rules unchanged.
    pub(crate) fn wrap(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if RuleKind::PushDownFilter.matches(rule.as_ref()) { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for BoundedFilterPushdown {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return self.rule.rewrite(plan, config) };
        let filter = merge_filters(filter)?;
        let Some(sizes) = ColumnSizes::try_new(&filter) else {
            return self.rule.rewrite(LogicalPlan::Filter(filter), config);
        };
        let (pushed, remaining) = sizes.split_by_size(filter.predicate);
        let input = match conjunction(pushed) {
            Some(pushed) => {
                let pushed = LogicalPlan::Filter(Filter::try_new(pushed, filter.input)?);
                self.rule.rewrite(pushed, config)?.map_data(|plan| Ok(Arc::new(plan)))?
            }
            None => Transformed::no(filter.input),
        };
        match conjunction(remaining) {
            Some(held) => input.map_data(|input| Filter::try_new(held, input).map(LogicalPlan::Filter)),
            None => Ok(input.update_data(Arc::unwrap_or_clone)),
        }
    }
}

/// Merges a filter with the filters directly below it, in evaluation order. DataFusion's rule would merge them itself,
/// and then push down the result without a limit.
fn merge_filters(mut filter: Filter) -> Result<Filter> {
    while matches!(filter.input.as_ref(), LogicalPlan::Filter(_)) {
        let LogicalPlan::Filter(below) = Arc::unwrap_or_clone(filter.input) else { unreachable!("it was a filter") };
        let mut seen = HashSet::new();
        let parts =
            split_conjunction_owned(below.predicate).into_iter().chain(split_conjunction_owned(filter.predicate));
        let parts = parts.filter(|part| seen.insert(part.clone())).collect::<Vec<_>>();
        let predicate = conjunction(parts).expect("a filter has no condition");
        filter = Filter::try_new(predicate, below.input)?;
    }
    Ok(filter)
}

/// Sizes of the expressions that compute the columns of a projection or an aggregate, in expression nodes.
struct ColumnSizes(HashMap<Column, usize>);

impl ColumnSizes {
    /// Measures the node below a filter; `None` if the filter stays below the limit when all of it is pushed down.
    fn try_new(filter: &Filter) -> Option<Self> {
        let (schema, exprs) = match filter.input.as_ref() {
            LogicalPlan::Projection(Projection { schema, expr, .. }) => (schema, expr),
            LogicalPlan::Aggregate(Aggregate { schema, group_expr, .. }) => (schema, group_expr),
            _ => return None,
        };
        let sizes: Vec<usize> = exprs.iter().map(|expr| node_count(expr, |_| 1)).collect();
        let largest = sizes.iter().copied().max().unwrap_or(1);
        if largest == 1 || node_count(&filter.predicate, |_| 1).saturating_mul(largest) <= FILTER_NODES_MAX {
            return None;
        }
        Some(Self(schema.columns().into_iter().zip(sizes).collect()))
    }

    /// Divides a condition into the conjuncts to push down and those to leave above.
    fn split_by_size(&self, condition: Expr) -> (Vec<Expr>, Vec<Expr>) {
        let parts = split_conjunction_owned(condition);
        let grown = |part: &Expr| {
            let below = node_count(part, |column| self.0.get(column).copied().unwrap_or(1));
            (node_count(part, |_| 1) < below).then_some(below)
        };
        let grown: Vec<Option<usize>> = parts.iter().map(grown).collect();
        let held = too_large_to_push(&grown);
        let (mut pushed, mut above) = (Vec::new(), Vec::new());
        for (part, is_held) in parts.into_iter().zip(held) {
            if is_held { above.push(part) } else { pushed.push(part) }
        }
        (pushed, above)
    }
}

/// Returns, per condition, whether it stays above a projection. `grown` is the condition's size below the projection,
/// in expression nodes, or `None` if it does not grow there. Small conditions are pushed down even if others stay.
#[must_use]
pub fn too_large_to_push(grown: &[Option<usize>]) -> Vec<bool> {
    let sum = grown.iter().flatten().fold(0_usize, |sum, size| sum.saturating_add(*size));
    let is_held =
        |size: &Option<usize>| FILTER_NODES_MAX < sum && size.is_some_and(|size| ALWAYS_PUSHED_NODES_MAX < size);
    grown.iter().map(is_held).collect()
}

/// Returns the size of an expression in nodes; a column counts as `of_column` says. Aliases and literals in lists do
/// not count, because no projection makes them grow.
fn node_count(expr: &Expr, of_column: impl Fn(&Column) -> usize) -> usize {
    let (mut count, mut listed) = (0_usize, 0_usize);
    let walked = expr.apply(|part| {
        let own = match part {
            Expr::Alias(_) => 0,
            Expr::Column(column) => of_column(column),
            _ => 1,
        };
        count = count.saturating_add(own);
        if let Expr::InList(InList { list, .. }) = part {
            listed += list.iter().filter(|item| matches!(item, Expr::Literal(..))).count();
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor returns no error");
    count.saturating_sub(listed)
}
