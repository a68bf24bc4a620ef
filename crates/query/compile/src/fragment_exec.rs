//! Operator that runs a compiled fragment.

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

use crate::explain_metrics::FragmentMetrics;
use crate::plan::{CompiledFragment, Input, OperatorId, declared_order, ordered, unordered};
use crate::run_fragment;

/// Runs pipelines of the engine in place of the operators that they were compiled from.
pub struct FragmentExec {
    /// Operators that were compiled.
    original: Arc<dyn ExecutionPlan>,
    compiled: Arc<CompiledFragment>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    metrics_by_operator: Arc<FragmentMetrics>,
}

impl FragmentExec {
    /// Returns the operator for a compiled fragment.
    pub(super) fn new(covered: Arc<dyn ExecutionPlan>, lowered: CompiledFragment) -> Self {
        Self::from_shared(covered, Arc::new(lowered))
    }

    fn from_shared(covered: Arc<dyn ExecutionPlan>, lowered: Arc<CompiledFragment>) -> Self {
        // Operators above may omit sort keys that are constant or equal to others, or rely on the order of rows.
        let known = if declared_order(&covered).is_some() { ordered(&covered) } else { unordered(&covered) };
        let properties =
            PlanProperties::new(known, Partitioning::UnknownPartitioning(1), EmissionType::Final, Boundedness::Bounded);
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let (metrics, measured) = (ExecutionPlanMetricsSet::new(), Arc::default());
        Self { original: covered, compiled: lowered, properties, metrics, metrics_by_operator: measured }
    }

    /// Returns the metrics of the operators that were compiled, as far as the fragment has run.
    pub fn fragment_metrics(&self) -> &FragmentMetrics {
        &self.metrics_by_operator
    }

    /// Returns the operators with expressions that are evaluated over Arrow arrays, with these expressions as SQL.
    pub fn arrow_expressions(&self) -> Vec<(OperatorId, String)> {
        self.compiled.arrow_expressions()
    }

    /// Returns the operators, other than scans, that provide rows to the fragment, each with the id of the compiled
    /// operator in whose place it runs.
    pub fn operator_inputs(&self) -> impl Iterator<Item = (OperatorId, &Arc<dyn ExecutionPlan>)> {
        self.compiled.inputs.iter().filter_map(|input| match input {
            Input::Scan(_) => None,
            Input::Operators(input) => Some((input.replaced_operator, &input.operators)),
        })
    }

    /// Returns the operators that were compiled.
    pub fn original(&self) -> &Arc<dyn ExecutionPlan> {
        &self.original
    }
}

impl fmt::Debug for FragmentExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FragmentExec").field("covered", &self.original).finish_non_exhaustive()
    }
}

impl DisplayAs for FragmentExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fragment: {} pipelines", self.compiled.program.pipelines.len())
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
        Ok(Arc::new(Self::from_shared(Arc::clone(&self.original), Arc::clone(&self.compiled))))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, 0);
        let rows = run_fragment::start(Arc::clone(&self.compiled), self.schema(), context, &self.metrics_by_operator);
        let counted = rows.inspect_ok(move |batch| baseline.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> DfResult<Arc<Statistics>> {
        // The single partition has the rows of all partitions of the compiled operators.
        let whole = args.clone().with_partition(None);
        StatisticsContext::new().compute(self.original.as_ref(), &whole)
    }
}
