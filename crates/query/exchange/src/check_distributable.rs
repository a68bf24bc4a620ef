//! Decides whether a plan can run outside of the instance's process.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions as e;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use functions::function_codec::{SerializedAggregate, SerializedScalar, SerializedWindow};
use operators::portable_operator::PortableOperator;
use optimizer::OptimizedPlan;
use plan::cancellation::is_wrapped;
use scan::{NotPortable, ShardScanExec};

/// Reason why a query runs in the instance. Its text completes "because …" in EXPLAIN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalReason {
    #[error("the cluster has no worker")]
    NoWorkers,
    #[error("it locks rows")]
    Locks,
    #[error("several readers share rows that are computed once")]
    SharedRows,
    #[error("it reads no shards")]
    NothingStored,
    #[error("its scalar subqueries must run before it can be distributed, and EXPLAIN runs none")]
    SubqueriesFirst,
    #[error("{operator} cannot be distributed")]
    Operator { operator: String },
    #[error("{function}() needs the session or the catalog, or is volatile")]
    Function { function: String },
    #[error("{expression} cannot be sent to another process")]
    Expression { expression: String },
    #[error("external files are read by the instance, which listed them: {table}")]
    ExternalFiles { table: String },
    #[error("{table} has many unflushed rows, which only the instance has")]
    UnflushedRows { table: String },
    #[error("an exchange has to preserve the order of rows")]
    OrderedExchange,
    #[error("an exchange partitions by expressions that are not columns")]
    ComputedExchange,
}

/// A query that runs in the instance.
#[derive(Debug)]
pub struct LocalQuery {
    pub reason: LocalReason,
    /// Undivided plan that was already made, if the instance would make the same one.
    pub plan: Option<(OptimizedPlan, Arc<dyn ExecutionPlan>)>,
}

impl From<LocalReason> for LocalQuery {
    fn from(reason: LocalReason) -> Self {
        Self { reason, plan: None }
    }
}

/// Checks that other processes can run `plan` or parts of it. Scalar subqueries are not checked: they are evaluated
/// first, and the plan carries their values.
///
/// # Errors
/// The first reason found.
pub fn check_distributable(plan: &Arc<dyn ExecutionPlan>) -> Result<(), LocalReason> {
    if let Some(with) = plan.downcast_ref::<ScalarSubqueryExec>() {
        return check_distributable(with.input());
    }
    check_operator(plan)?;
    let mut problem = None;
    let walked = plan.apply_expressions(&mut |expression| {
        problem = check_expression(expression).err();
        Ok(if problem.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.expect("the visitor of expressions returns no error");
    if let Some(problem) = problem {
        return Err(problem);
    }
    plan.children().into_iter().try_for_each(check_distributable)
}

/// Checks one operator, without its expressions and inputs.
fn check_operator(plan: &Arc<dyn ExecutionPlan>) -> Result<(), LocalReason> {
    if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
        let table = || scan.scan.table.name.clone();
        return match scan.not_portable_because() {
            None => Ok(()),
            Some(NotPortable::ExternalTable) => Err(LocalReason::ExternalFiles { table: table() }),
            Some(NotPortable::UnflushedRows) => Err(LocalReason::UnflushedRows { table: table() }),
        };
    }
    if let Some(exchange) = plan.downcast_ref::<RepartitionExec>() {
        return check_exchange(exchange);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let mut functions = aggregate.aggr_expr().iter().map(|call| call.fun());
        return functions
            .try_for_each(|function| check_portable(function.name(), SerializedAggregate::encode(function)));
    }
    if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        return window.window_expr().iter().try_for_each(check_window);
    }
    if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        return window.window_expr().iter().try_for_each(check_window);
    }
    let is_known = plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnionExec>()
        || plan.is::<EmptyExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<BufferExec>()
        || PortableOperator::try_from_operator(plan.as_ref()).is_some();
    if is_known { Ok(()) } else { Err(LocalReason::Operator { operator: plan.name().to_owned() }) }
}

/// Checks an exchange: between processes, rows lose their order and are partitioned by columns only.
fn check_exchange(exchange: &RepartitionExec) -> Result<(), LocalReason> {
    if exchange.preserve_order() {
        return Err(LocalReason::OrderedExchange);
    }
    match exchange.partitioning() {
        Partitioning::Hash(keys, _) if !keys.iter().all(|key| key.is::<e::Column>()) => {
            Err(LocalReason::ComputedExchange)
        }
        Partitioning::Hash(..) | Partitioning::RoundRobinBatch(_) => Ok(()),
        other => Err(LocalReason::Operator { operator: format!("an exchange with partitioning {other}") }),
    }
}

/// Checks the function of a window expression.
fn check_window(window: &Arc<dyn WindowExpr>) -> Result<(), LocalReason> {
    let window = window.as_any();
    let aggregate = window.downcast_ref::<PlainAggregateWindowExpr>().map(PlainAggregateWindowExpr::get_aggregate_expr);
    let sliding = || window.downcast_ref::<SlidingAggregateWindowExpr>().map(|it| it.get_aggregate_expr());
    if let Some(call) = aggregate.or_else(sliding) {
        return check_portable(call.fun().name(), SerializedAggregate::encode(call.fun()));
    }
    let standard = window.downcast_ref::<StandardWindowExpr>().map(StandardWindowExpr::get_standard_func_expr);
    let function = standard.and_then(|function| function.as_any().downcast_ref::<WindowUDFExpr>());
    let Some(function) = function else { return Err(LocalReason::Operator { operator: "this window".to_owned() }) };
    check_portable(function.fun().name(), SerializedWindow::encode(function.fun()))
}

/// Checks an expression and its inputs.
fn check_expression(expression: &Arc<dyn PhysicalExpr>) -> Result<(), LocalReason> {
    if let Some(call) = expression.downcast_ref::<ScalarFunctionExpr>() {
        check_portable(call.fun().name(), SerializedScalar::encode(call.fun()))?;
    } else {
        let is_known = expression.is::<e::Column>()
            || expression.is::<e::UnKnownColumn>()
            || expression.is::<e::Literal>()
            || expression.is::<e::BinaryExpr>()
            || expression.is::<e::IsNullExpr>()
            || expression.is::<e::IsNotNullExpr>()
            || expression.is::<e::NotExpr>()
            || expression.is::<e::NegativeExpr>()
            || expression.is::<e::InListExpr>()
            || expression.is::<e::CaseExpr>()
            || expression.is::<e::CastExpr>()
            || expression.is::<e::TryCastExpr>()
            || expression.is::<e::LikeExpr>()
            || expression.is::<e::DynamicFilterPhysicalExpr>()
            || expression.is::<ScalarSubqueryExpr>()
            || is_wrapped(expression);
        if !is_known {
            return Err(LocalReason::Expression { expression: expression.to_string() });
        }
    }
    expression.children().into_iter().try_for_each(check_expression)
}

/// Returns an error if the function `name` has no portable form.
fn check_portable<T>(name: &str, form: Option<T>) -> Result<(), LocalReason> {
    form.map(|_| ()).ok_or_else(|| LocalReason::Function { function: name.to_owned() })
}

/// Returns the bytes of the shards that a plan's scans read after pruning.
pub(super) fn scanned_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut bytes = 0;
    let walked = plan.apply(|operator| {
        if let Some(scan) = operator.downcast_ref::<ShardScanExec>() {
            bytes += scan.scan.shards.iter().map(|shard| shard.meta.bytes).sum::<u64>();
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor of a plan's scans returns no error");
    bytes
}
