//! Exchange between the threads of a task, hidden from the library, which would make it one between tasks.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion_distributed::NetworkBoundaryExt;

/// Hash exchange among the partitions of a task; all rows with equal keys are in the task already. It executes as the
/// [`RepartitionExec`] that it holds.
#[derive(Debug)]
pub struct LocalExchangeExec {
    exchange: Arc<RepartitionExec>,
}

impl LocalExchangeExec {
    /// Returns an exchange by `keys` among `partitions`.
    pub(super) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        partitions: usize,
    ) -> DfResult<Self> {
        Ok(Self { exchange: Arc::new(RepartitionExec::try_new(input, Partitioning::Hash(keys, partitions))?) })
    }

    /// Returns the plain exchange, which the library makes one between tasks in a distributed plan.
    pub(super) fn exchange(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.exchange) as _
    }

    /// Returns the expressions by which rows are partitioned.
    pub(super) fn keys(&self) -> &[Arc<dyn PhysicalExpr>] {
        match self.exchange.partitioning() {
            Partitioning::Hash(keys, _) => keys,
            _ => &[],
        }
    }
}

/// Returns whether both sides of a partitioned hash join meet in the tasks that read them, without an exchange between
/// tasks. False for plans that are not divided among tasks.
pub fn is_colocated_join(join: &HashJoinExec) -> bool {
    let inputs = [join.left(), join.right()];
    let is_divided = |input: &Arc<dyn ExecutionPlan>| input.exists(|below| Ok(below.is::<LocalExchangeExec>()));
    *join.partition_mode() == PartitionMode::Partitioned
        && inputs.iter().any(|input| is_divided(input).expect("the search for an exchange returns no error"))
        && inputs.iter().all(|input| is_read_in_place(input))
}

/// Returns whether rows come from scans without leaving their task.
fn is_read_in_place(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is_network_boundary() {
        return false;
    }
    match plan.downcast_ref::<HashJoinExec>() {
        // The build side is broadcast to all tasks.
        Some(join) if *join.partition_mode() != PartitionMode::Partitioned => is_read_in_place(join.right()),
        _ => plan.children().into_iter().all(is_read_in_place),
    }
}

impl DisplayAs for LocalExchangeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithinTasks")
    }
}

impl ExecutionPlan for LocalExchangeExec {
    fn name(&self) -> &'static str {
        "WithinTasksExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.exchange.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.exchange.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("an exchange has one input") };
        let partitions = self.exchange.partitioning().partition_count();
        Ok(Arc::new(Self::try_new(input, self.keys().to_vec(), partitions)?))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        self.exchange.apply_expressions(visit)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.exchange.maintains_input_order()
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        self.exchange.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.exchange.metrics()
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> DfResult<Arc<Statistics>> {
        self.exchange.statistics_from_inputs(inputs, args)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
