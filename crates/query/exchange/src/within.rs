//! An exchange between the threads of a task, where the library would see one between tasks.

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

/// Rows go among the partitions of their task by keys: all rows with a key are in the task already. To who runs it it is the exchange that it holds.
#[derive(Debug)]
pub struct WithinTasksExec {
    exchange: Arc<RepartitionExec>,
}

impl WithinTasksExec {
    /// Among so many partitions by these columns.
    pub(super) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        partitions: usize,
    ) -> DfResult<Self> {
        Ok(Self { exchange: Arc::new(RepartitionExec::try_new(input, Partitioning::Hash(keys, partitions))?) })
    }

    /// The exchange, which is between tasks where nobody says otherwise.
    pub(super) fn exchange(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.exchange) as _
    }

    /// The columns by which rows go.
    pub(super) fn keys(&self) -> &[Arc<dyn PhysicalExpr>] {
        match self.exchange.partitioning() {
            Partitioning::Hash(keys, _) => keys,
            _ => &[],
        }
    }
}

/// Whether the rows of a join by keys meet in the tasks in which they are read, as no exchange between tasks brings them together. Never where a plan is
/// not divided among tasks.
pub fn meets_within_tasks(join: &HashJoinExec) -> bool {
    let inputs = [join.left(), join.right()];
    let is_divided = |input: &Arc<dyn ExecutionPlan>| input.exists(|below| Ok(below.is::<WithinTasksExec>()));
    *join.partition_mode() == PartitionMode::Partitioned
        && inputs.iter().any(|input| is_divided(input).expect("nothing fails on the way"))
        && inputs.iter().all(|input| stays(input))
}

/// Whether rows come from scans without leaving their task.
fn stays(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is_network_boundary() {
        return false;
    }
    match plan.downcast_ref::<HashJoinExec>() {
        // The other side goes to all tasks.
        Some(join) if *join.partition_mode() != PartitionMode::Partitioned => stays(join.right()),
        _ => plan.children().into_iter().all(stays),
    }
}

impl DisplayAs for WithinTasksExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithinTasks")
    }
}

impl ExecutionPlan for WithinTasksExec {
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
        let Some(input) = children.pop() else { return internal_err!("an exchange has an input") };
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
