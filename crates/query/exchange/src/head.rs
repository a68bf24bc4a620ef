//! The operator at the top of the part of a plan that the instance itself runs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use compile::cover;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_distributed::DistributedLeafExec;

use crate::within::WithinTasksExec;

/// Has programs run what the instance itself does of a plan: which only shows when the plan runs, for its inputs are then told where they are.
#[derive(Debug)]
pub(crate) struct HeadExec {
    input: Arc<dyn ExecutionPlan>,
    engine: bool,
    /// What ran in the end.
    covered: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl HeadExec {
    /// Runs `input`, by programs where the engine is on.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, engine: bool) -> Self {
        Self { input, engine, covered: OnceLock::new() }
    }
}

impl HeadExec {
    /// What ran of it; before it runs, what it was planned as.
    pub(crate) fn shown(&self) -> &Arc<dyn ExecutionPlan> {
        self.covered.get().unwrap_or(&self.input)
    }
}

impl DisplayAs for HeadExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Head")
    }
}

impl ExecutionPlan for HeadExec {
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
        let Some(input) = children.pop() else { return internal_err!("a head has an input") };
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
            return internal_err!("a head has one partition");
        }
        // What the instance scans itself it does not divide.
        let whole = |operator: Arc<dyn ExecutionPlan>| {
            if let Some(leaf) = operator.downcast_ref::<DistributedLeafExec>() {
                return Ok(Transformed::yes(Arc::clone(leaf.original())));
            }
            match operator.downcast_ref::<WithinTasksExec>() {
                Some(within) => Ok(Transformed::yes(within.exchange())),
                None => Ok(Transformed::no(operator)),
            }
        };
        let input = Arc::clone(&self.input).transform_up(whole).data()?;
        let covered = if self.engine { cover(input)? } else { input };
        let covered = self.covered.get_or_init(|| covered);
        covered.execute(0, context)
    }
}
