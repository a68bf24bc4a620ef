//! Conversion of single-threaded plans to several partitions, for the operators that the engine does not run.
//!
//! Plans are made for one thread: the engine replaces most operators and divides their rows itself. Each remaining
//! operator gets the form that DataFusion's planner gives it for several partitions; then the rules run that insert
//! exchanges.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SessionState;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::partial_sort::PartialSortExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use plan::cancellation::make_cancellable;
use plan::plan_limits;
use tokio_util::sync::CancellationToken;

use crate::fenced_rule::is_limit;
use crate::optimizer_rules::runs_for_partitions;
use crate::shared_rows::SharedScanExec;

/// Predicate that is true if compiled fragments run the entire plan, so that more partitions gain nothing.
pub type CoversEntirePlan<'a> = &'a dyn Fn(&Arc<dyn ExecutionPlan>) -> bool;

/// Converts a single-threaded plan to as many partitions as `state` says, and the plans of its shared rows as well,
/// unless `is_whole` holds for these. The operators fail with `57014` soon after `stop` fires.
///
/// # Errors
/// `54001` if the plan is nested too deeply.
pub(crate) fn parallelize_plan(
    operators: Arc<dyn ExecutionPlan>,
    state: &SessionState,
    covers_entire_plan: CoversEntirePlan<'_>,
    stop: &CancellationToken,
) -> Result<Arc<dyn ExecutionPlan>> {
    let config = state.config_options();
    if config.execution.target_partitions < 2 {
        return Ok(operators);
    }
    let of_partitions = |operator: Arc<dyn ExecutionPlan>| {
        // Rules match operators by their direct parents. Yielding wrappers are removed here and added again by a rule
        // below.
        if let Some(cooperative) = operator.downcast_ref::<CooperativeExec>() {
            return Ok(Transformed::yes(Arc::clone(cooperative.input())));
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            let rows = shared.rows();
            if !covers_entire_plan(rows.operators()) {
                rows.partition(|operators| parallelize_plan(operators, state, covers_entire_plan, stop))?;
            }
        }
        let other = if operator.children().is_empty() {
            partition_leaf(&operator, config)?
        } else {
            partition_operator(&operator)?
        };
        match (partition_fetch(&operator), other) {
            (None, None) => Ok(Transformed::no(operator)),
            (None, Some(other)) => Ok(Transformed::yes(other)),
            (Some(rows), other) => {
                let limited = GlobalLimitExec::new(other.unwrap_or(operator), 0, Some(rows));
                Ok(Transformed::yes(Arc::new(limited) as Arc<dyn ExecutionPlan>))
            }
        }
    };
    let mut operators = operators.transform_up(of_partitions).data()?;
    for rule in state.physical_optimizers().iter().filter(|rule| runs_for_partitions(rule.as_ref())) {
        operators = rule.optimize(operators, config)?;
    }
    plan_limits::check_operators(&operators)?;
    make_cancellable(operators, stop)
}

/// Returns the row limit of an operator that applies per partition, so that several partitions need a limit above.
fn partition_fetch(operator: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let counts_all = is_limit(operator) || operator.is::<SortExec>() || operator.is::<PartialSortExec>();
    if counts_all { None } else { operator.fetch() }
}

/// Returns a leaf with more partitions, if it supports them.
fn partition_leaf(operator: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if operator.is::<DataSourceExec>() {
        // In-memory data is small, or has its final partitions already.
        return Ok(None);
    }
    operator.repartitioned(config.execution.target_partitions, config)
}

/// Returns the form of an operator for several partitions; `None` if it stays unchanged.
fn partition_operator(operator: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(aggregate) = operator.downcast_ref::<AggregateExec>() {
        return match aggregate.mode() {
            AggregateMode::Single => split_aggregation(aggregate).map(Some),
            AggregateMode::Final if !aggregate.group_expr().is_empty() => {
                partition_final_aggregation(aggregate).map(Some)
            }
            _ => Ok(None),
        };
    }
    if let Some(join) = operator.downcast_ref::<HashJoinExec>() {
        let may_part = *join.partition_mode() == PartitionMode::CollectLeft && !join.null_aware;
        // A later rule chooses the mode by the statistics of the inputs.
        return may_part.then(|| join.builder().with_partition_mode(PartitionMode::Auto).build_exec()).transpose();
    }
    if let Some(windows) = operator.downcast_ref::<BoundedWindowAggExec>() {
        let (functions, input) = (windows.window_expr().to_vec(), remove_sort(windows.input()));
        let windows = BoundedWindowAggExec::try_new(functions, input, windows.input_order_mode.clone(), true)?;
        return Ok(Some(Arc::new(windows)));
    }
    if let Some(windows) = operator.downcast_ref::<WindowAggExec>() {
        let (functions, input) = (windows.window_expr().to_vec(), remove_sort(windows.input()));
        return Ok(Some(Arc::new(WindowAggExec::try_new(functions, input, true)?)));
    }
    Ok(None)
}

/// Splits an aggregation into a partial one per partition and a final one.
fn split_aggregation(aggregate: &AggregateExec) -> Result<Arc<dyn ExecutionPlan>> {
    let (groups, filters) = (aggregate.group_expr().clone(), aggregate.filter_expr().to_vec());
    let (input, schema) = (Arc::clone(aggregate.input()), aggregate.input_schema());
    let functions = aggregate.aggr_expr().iter().map(without_order_reliance).collect::<Result<Vec<_>>>()?;
    let partial =
        AggregateExec::try_new(AggregateMode::Partial, groups, functions, filters.clone(), input, Arc::clone(&schema))?;
    let partial = partial.with_limit_options(aggregate.limit_options());
    let mode = if partial.group_expr().is_empty() { AggregateMode::Final } else { AggregateMode::FinalPartitioned };
    // The partial aggregation may have replaced functions by their reverse, such as first_value by last_value.
    let (groups, functions) = (partial.group_expr().as_final(), partial.aggr_expr().to_vec());
    let last = AggregateExec::try_new(mode, groups, functions, filters, Arc::new(partial), schema)?;
    rename_columns_as(Arc::new(last.with_limit_options(aggregate.limit_options())), aggregate)
}

/// Renames columns to those of `other`: a reversed function has another name.
fn rename_columns_as(operators: Arc<dyn ExecutionPlan>, other: &AggregateExec) -> Result<Arc<dyn ExecutionPlan>> {
    let (own, wanted) = (operators.schema(), other.schema());
    if own.fields().iter().zip(wanted.fields()).all(|(own, wanted)| own.name() == wanted.name()) {
        return Ok(operators);
    }
    let columns = own.fields().iter().zip(wanted.fields()).enumerate().map(|(place, (own, wanted))| {
        let column = Arc::new(Column::new(own.name(), place)) as Arc<dyn PhysicalExpr>;
        ProjectionExpr { expr: column, alias: wanted.name().clone() }
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), operators)?))
}

/// Returns a function that relies on no input order: several partitions have none, and a rule finds out which order
/// partial aggregations may rely on.
fn without_order_reliance(function: &Arc<AggregateFunctionExpr>) -> Result<Arc<AggregateFunctionExpr>> {
    if !function.order_sensitivity().is_beneficial() {
        return Ok(Arc::clone(function));
    }
    let other = Arc::clone(function).with_beneficial_ordering(false)?;
    Ok(other.map_or_else(|| Arc::clone(function), Arc::new))
}

/// Partitions a final aggregation by its group keys.
fn partition_final_aggregation(aggregate: &AggregateExec) -> Result<Arc<dyn ExecutionPlan>> {
    let (groups, filters) = (aggregate.group_expr().clone(), aggregate.filter_expr().to_vec());
    let (input, functions) = (Arc::clone(aggregate.input()), aggregate.aggr_expr().to_vec());
    let mode = AggregateMode::FinalPartitioned;
    let other = AggregateExec::try_new(mode, groups, functions, filters, input, aggregate.input_schema())?;
    Ok(Arc::new(other.with_limit_options(aggregate.limit_options())))
}

/// Removes the single-partition sort below window functions: a rule adds a sort after the exchange.
fn remove_sort(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let Some(sort) = input.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) else {
        return Arc::clone(input);
    };
    match sort.input().downcast_ref::<CoalescePartitionsExec>().filter(|coalesce| coalesce.fetch().is_none()) {
        Some(coalesce) => Arc::clone(coalesce.input()),
        None => Arc::clone(sort.input()),
    }
}
