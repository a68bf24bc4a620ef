//! Optimization of `… WHERE rank <= k` above `rank() OVER (PARTITION BY … ORDER BY …)`: rows of a higher rank are
//! removed before the sort.
//!
//! The filter and the window function stay unchanged. Below the sort, a [`RankLimitExec`] passes all rows within the
//! limit and few others.

mod exec;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use plan::StandardWindow;

pub use self::exec::RankLimitExec;

/// Largest limit for which the best rows of a partition are remembered.
const RANK_MAX: usize = 10_000;

/// Rule that puts rank limits below sorts.
#[derive(Debug)]
pub(crate) struct LimitRanks;

impl PhysicalOptimizerRule for LimitRanks {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|operator| {
            let limited = match operator.downcast_ref::<FilterExec>() {
                Some(filter) => limit_ranks_below(filter)?,
                None => None,
            };
            Ok(match limited {
                Some(input) => Transformed::yes(replace_children_if_necessary(operator, vec![input])?),
                None => Transformed::no(operator),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "limit_ranks"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the input of a filter with a rank limit in it; `None` if the filter does not bound a rank.
fn limit_ranks_below(filter: &FilterExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    for part in split_conjunction(filter.predicate()) {
        if let Some((column, most)) = rank_bound(part)
            && let Some(input) = push_below_window(filter.input(), column, most)?
        {
            return Ok(Some(input));
        }
    }
    Ok(None)
}

/// Returns the column that a condition bounds, and its greatest value that passes.
fn rank_bound(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let value = |side: &Arc<dyn PhysicalExpr>| match side.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int64(Some(value)) => Some(*value),
        ScalarValue::Int32(Some(value)) => Some(i64::from(*value)),
        _ => None,
    };
    let column = |side: &Arc<dyn PhysicalExpr>| side.downcast_ref::<Column>().map(Column::index);
    let (column, operator, value) = match (column(binary.left()), value(binary.right())) {
        (Some(column), Some(value)) => (column, *binary.op(), value),
        _ => (column(binary.right())?, binary.op().swap()?, value(binary.left())?),
    };
    let most = match operator {
        Operator::LtEq | Operator::Eq => value,
        Operator::Lt => value.checked_sub(1)?,
        _ => return None,
    };
    usize::try_from(most).ok().filter(|most| (1..=RANK_MAX).contains(most)).map(|most| (column, most))
}

/// Returns the plan with a limit below the sort of the window function that computes this column.
fn push_below_window(
    plan: &Arc<dyn ExecutionPlan>,
    column: usize,
    most: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let windows = match (plan.downcast_ref::<BoundedWindowAggExec>(), plan.downcast_ref::<WindowAggExec>()) {
        (Some(window), _) => window.window_expr(),
        (_, Some(window)) => window.window_expr(),
        _ => {
            let below_column = match plan.downcast_ref::<ProjectionExec>() {
                Some(projection) => projection.expr()[column].expr.downcast_ref::<Column>().map(Column::index),
                None => plan.is::<RepartitionExec>().then_some(column),
            };
            let Some(below_column) = below_column else { return Ok(None) };
            let Some(input) = push_below_window(plan.children()[0], below_column, most)? else { return Ok(None) };
            return replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some);
        }
    };
    let input = plan.children()[0];
    let Some(rank) = column.checked_sub(input.schema().fields().len()).and_then(|at| windows.get(at)) else {
        return Ok(None);
    };
    // Other functions could depend on rows beyond the limit.
    let is_like = |window: &Arc<dyn WindowExpr>| {
        is_rank(window) && window.partition_by() == rank.partition_by() && window.order_by() == rank.order_by()
    };
    let schema = input.schema();
    // Equal floats may differ in their bits.
    let is_exact = |expression: &Arc<dyn PhysicalExpr>| {
        let has_order = expression.data_type(&schema).is_ok_and(|form| !form.is_floating() && !form.is_nested());
        // The sort evaluates the expression again, and must get the same value.
        has_order && !is_volatile(expression)
    };
    let is_fit = windows.iter().all(is_like)
        && !rank.order_by().is_empty()
        && !rank.partition_by().is_empty()
        && rank.partition_by().iter().chain(rank.order_by().iter().map(|sort| &sort.expr)).all(is_exact);
    if !is_fit {
        return Ok(None);
    }
    let Some(input) = push_below_sort(input, rank, most, false)? else { return Ok(None) };
    replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some)
}

fn is_rank(window: &Arc<dyn WindowExpr>) -> bool {
    let function = window.as_any().downcast_ref::<StandardWindowExpr>().map(StandardWindowExpr::get_standard_func_expr);
    let function = function.and_then(|function| function.as_any().downcast_ref::<WindowUDFExpr>());
    let function = function.and_then(|function| StandardWindow::from_function(function.fun()));
    matches!(function, Some(StandardWindow::Rank | StandardWindow::RowNumber))
}

/// Returns the plan with the limit below its sort and below the exchanges under that.
fn push_below_sort(
    plan: &Arc<dyn ExecutionPlan>,
    rank: &Arc<dyn WindowExpr>,
    most: usize,
    is_sorted: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_sort = plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none());
    let is_exchange =
        plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>();
    if is_sort || (is_exchange && plan.fetch().is_none()) {
        let input = push_below_sort(plan.children()[0], rank, most, is_sorted || is_sort)?;
        return input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose();
    }
    if !is_sorted {
        return Ok(None);
    }
    let limit = RankLimitExec::new(Arc::clone(plan), rank.partition_by().to_vec(), rank.order_by().to_vec(), most);
    Ok(Some(Arc::new(limit)))
}
