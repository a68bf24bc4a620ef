//! Root operator of the stage that the instance itself runs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use compile::compile_plan;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_distributed::DistributedLeafExec;

use crate::local_exchange::LocalExchangeExec;

/// Root stage of a distributed plan, run in the instance. It is compiled on execution, because the library tells its
/// inputs where their tasks run only then.
#[derive(Debug)]
pub(crate) struct RootStageExec {
    input: Arc<dyn ExecutionPlan>,
    engine: bool,
    /// Plan that was executed.
    executed: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl RootStageExec {
    /// Returns the root stage over `input`, compiled on execution if `engine` is set.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, engine: bool) -> Self {
        Self { input, engine, executed: OnceLock::new() }
    }
}

impl RootStageExec {
    /// Returns the executed plan, or the planned one before execution.
    pub(crate) fn displayed(&self) -> &Arc<dyn ExecutionPlan> {
        self.executed.get().unwrap_or(&self.input)
    }
}

impl DisplayAs for RootStageExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Head")
    }
}

impl ExecutionPlan for RootStageExec {
    fn name(&self) -> &'static str {
        "HeadExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("the root stage has exactly one input") };
        Ok(Arc::new(Self::new(input, self.engine)))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        if partition != 0 || self.input.output_partitioning().partition_count() != 1 {
            return internal_err!("the root stage has exactly one partition");
        }
        // Scans of the root stage are not divided among tasks.
        let whole = |operator: Arc<dyn ExecutionPlan>| {
            if let Some(leaf) = operator.downcast_ref::<DistributedLeafExec>() {
                return Ok(Transformed::yes(Arc::clone(leaf.original())));
            }
            match operator.downcast_ref::<LocalExchangeExec>() {
                Some(within) => Ok(Transformed::yes(within.exchange())),
                None => Ok(Transformed::no(operator)),
            }
        };
        let input = Arc::clone(&self.input).transform_up(whole).data()?;
        let covered = if self.engine { compile_plan(input)? } else { input };
        let covered = self.executed.get_or_init(|| covered);
        covered.execute(0, context)
    }
}
