//! The operator that runs a program.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DfResult, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, TryStreamExt};

use crate::measure::Measured;
use crate::plan::{Input, Lowered, OperatorId, declared_order, ordered, unordered};
use crate::run;

/// Runs a program of the engine's in the place of the operators that it was made of.
pub struct FragmentExec {
    /// What it stands for.
    covered: Arc<dyn ExecutionPlan>,
    lowered: Arc<Lowered>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    measured: Arc<Measured>,
}

impl FragmentExec {
    pub(super) fn new(covered: Arc<dyn ExecutionPlan>, lowered: Lowered) -> Self {
        Self::of(covered, Arc::new(lowered))
    }

    fn of(covered: Arc<dyn ExecutionPlan>, lowered: Arc<Lowered>) -> Self {
        // Operators above may rely on columns that are constant or equal, and sort by none of them; or on the order of rows.
        let known = if declared_order(&covered).is_some() { ordered(&covered) } else { unordered(&covered) };
        let properties =
            PlanProperties::new(known, Partitioning::UnknownPartitioning(1), EmissionType::Final, Boundedness::Bounded);
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let (metrics, measured) = (ExecutionPlanMetricsSet::new(), Arc::default());
        Self { covered, lowered, properties, metrics, measured }
    }

    /// How many rows those operators would have given, of what has run.
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// The operators some of whose expressions are computed over Arrow's arrays, with each of these as SQL.
    pub fn over_arrays(&self) -> Vec<(OperatorId, String)> {
        self.lowered.over_arrays()
    }

    /// The operators that give rows to its program, beside scans, each with the one that it has in its place among those it stands for.
    pub fn foreign(&self) -> impl Iterator<Item = (OperatorId, &Arc<dyn ExecutionPlan>)> {
        self.lowered.inputs.iter().filter_map(|input| match input {
            Input::Scan(_) => None,
            Input::Foreign(input) => Some((input.stands_for, &input.operators)),
        })
    }

    /// The operators that it stands for.
    pub fn covered(&self) -> &Arc<dyn ExecutionPlan> {
        &self.covered
    }
}

impl fmt::Debug for FragmentExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FragmentExec").field("covered", &self.covered).finish_non_exhaustive()
    }
}

impl DisplayAs for FragmentExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fragment: {} pipelines", self.lowered.program.pipelines.len())
    }
}

impl ExecutionPlan for FragmentExec {
    fn name(&self) -> &'static str {
        "FragmentExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::of(Arc::clone(&self.covered), Arc::clone(&self.lowered))))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, 0);
        let rows = run::start(Arc::clone(&self.lowered), self.schema(), context, &self.measured);
        let counted = rows.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> DfResult<Arc<Statistics>> {
        // Its one partition has the rows of all partitions of what it covers.
        let whole = args.clone().with_partition(None);
        StatisticsContext::new().compute(self.covered.as_ref(), &whole)
    }
}
