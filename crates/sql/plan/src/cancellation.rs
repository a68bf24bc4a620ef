//! Cancellation of, and yielding in, DataFusion operators that do neither.
//!
//! Scans yield the thread every few batches. A join that produces many rows from one batch does not poll its scans for
//! a long time; if its filter drops these rows it returns nothing either. Such a step cannot return to the scheduler,
//! so it lets other tasks run through a hook of the threads ([`set_yield_hook`]).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, SchedulingType};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use functions::error::to_datafusion;
use tokio_util::sync::CancellationToken;
use types::SqlError;
use types::interrupt::canceled_error;

/// Hook that runs a part of a step that cannot yield, and lets other tasks have the thread if the step is long.
pub type YieldHook = fn(&mut dyn FnMut());

static YIELD_HOOK: OnceLock<YieldHook> = OnceLock::new();

/// Installs the hook with which operators that cannot yield compute each batch.
///
/// Only the first call has an effect: all warehouses of a process have threads of one kind.
pub fn set_yield_hook(giving_way: YieldHook) {
    YIELD_HOOK.get_or_init(|| giving_way);
}

/// Maximum number of yielding operators on a path from the root to a leaf.
///
/// The runtime gives a task a budget of 128 units per poll, and each yielding operator takes one before it polls its
/// input: with more of them on a path, the leaf would never be polled. Operators above the limit yield when those below
/// do.
const YIELDING_LEVELS_MAX: usize = 32;

/// Makes the operators of a plan yield, and fail with [`canceled`] soon after `stop` fires.
///
/// # Errors
/// None for well-formed plans.
pub fn make_cancellable(plan: Arc<dyn ExecutionPlan>, stop: &CancellationToken) -> DfResult<Arc<dyn ExecutionPlan>> {
    // For each visited operator without a visited parent, the most yielding operators on a path to a leaf.
    let mut levels: Vec<usize> = Vec::new();
    let heeding = plan.transform_up(|operator| {
        let below =
            levels.split_off(levels.len().saturating_sub(operator.children().len())).into_iter().max().unwrap_or(0);
        let may_yield = below < YIELDING_LEVELS_MAX;
        let yields = operator.is::<CooperativeExec>();
        let watched = wrap_join_filter(&operator, stop)?;
        let is_changed = watched.is_some();
        let operator = watched.unwrap_or(operator);
        if may_yield && (is_changed || may_add_rows(&operator)) {
            levels.push(below + 1);
            return Ok(Transformed::yes(Arc::new(CooperativeExec::new(operator)) as Arc<dyn ExecutionPlan>));
        }
        levels.push(below + usize::from(yields));
        Ok(Transformed::new_transformed(operator, is_changed))
    });
    heeding.map(|plan| plan.data)
}

/// Returns whether an operator may produce more rows than it reads, and does not yield by itself.
fn may_add_rows(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let yields = operator.properties().scheduling_type == SchedulingType::Cooperative;
    let effect = operator.cardinality_effect();
    !yields
        && !operator.children().is_empty()
        && matches!(effect, CardinalityEffect::Unknown | CardinalityEffect::GreaterEqual)
}

/// Wraps the filter of a join; `None` for other operators, joins without a filter, and wrapped ones.
fn wrap_join_filter(
    operator: &Arc<dyn ExecutionPlan>,
    stop: &CancellationToken,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = operator.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter().filter(|filter| !is_wrapped(filter.expression()))
    {
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(wrap_filter(filter, stop))).build()?;
        return Ok(Some(Arc::new(join)));
    }
    if let Some(join) = operator.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter().filter(|filter| !is_wrapped(filter.expression()))
    {
        return join.builder().with_filter(Some(wrap_filter(filter, stop))).build_exec().map(Some);
    }
    Ok(None)
}

fn wrap_filter(filter: &JoinFilter, stop: &CancellationToken) -> JoinFilter {
    let expression = CancellableCondition { inner: Arc::clone(filter.expression()), stop: stop.clone() };
    JoinFilter::new(Arc::new(expression), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// Returns a join's condition without the wrapper, for operators that check for cancellation themselves.
#[must_use]
pub fn unwrap_condition(condition: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    condition.downcast_ref::<CancellableCondition>().map_or(condition, |watched| &watched.inner)
}

/// Returns whether a condition is wrapped.
#[must_use]
pub fn is_wrapped(condition: &Arc<dyn PhysicalExpr>) -> bool {
    condition.is::<CancellableCondition>()
}

/// Wrapper of a join's condition that yields, and fails once the stop token has fired.
#[derive(Debug)]
struct CancellableCondition {
    inner: Arc<dyn PhysicalExpr>,
    stop: CancellationToken,
}

impl PhysicalExpr for CancellableCondition {
    fn evaluate(&self, batch: &RecordBatch) -> DfResult<ColumnarValue> {
        if self.stop.is_cancelled() {
            return Err(to_datafusion(canceled_error()));
        }
        let Some(giving_way) = YIELD_HOOK.get() else { return self.inner.evaluate(batch) };
        let mut evaluated = None;
        giving_way(&mut || evaluated = Some(self.inner.evaluate(batch)));
        evaluated.unwrap_or_else(|| {
            Err(to_datafusion(SqlError::internal("the yield hook returned without evaluating the condition")))
        })
    }

    fn return_field(&self, input: &Schema) -> DfResult<FieldRef> {
        self.inner.return_field(input)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> DfResult<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { inner: children.swap_remove(0), stop: self.stop.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

impl fmt::Display for CancellableCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for CancellableCondition {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for CancellableCondition {}

impl Hash for CancellableCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}
