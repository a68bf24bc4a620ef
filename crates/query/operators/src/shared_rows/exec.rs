//! Operator that reads shared rows.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use super::materialization::SharedRows;

/// Operator that reads rows which other operators read too. It is a leaf: the operators that compute the rows belong to
/// no single reader.
#[derive(Debug)]
pub struct SharedScanExec {
    relation: String,
    is_with_query: bool,
    /// True if the order of the rows matters, so that one partition reads them all.
    is_ordered: bool,
    rows: Arc<SharedRows>,
    /// Positions of its columns among those of the rows.
    columns: Vec<usize>,
    expected_rows: f64,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SharedScanExec {
    pub(super) fn new(
        relation: String,
        rows: Arc<SharedRows>,
        columns: Vec<usize>,
        schema: SchemaRef,
        partitions: usize,
        estimate: f64,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let metrics = ExecutionPlanMetricsSet::new();
        Self {
            relation,
            is_with_query: false,
            is_ordered: false,
            rows,
            columns,
            expected_rows: estimate,
            properties,
            metrics,
        }
    }

    /// Turns it into a scan that preserves the order of the rows.
    pub(super) fn with_order(self) -> Self {
        Self { is_ordered: true, ..self }
    }

    /// Marks it as a scan of a WITH query that is AS MATERIALIZED.
    pub(super) fn displayed_as_cte(self) -> Self {
        Self { is_with_query: true, ..self }
    }

    /// Returns true if the rows are those of a WITH query that is AS MATERIALIZED.
    #[must_use]
    pub fn is_with_query(&self) -> bool {
        self.is_with_query
    }

    /// Returns the name of the rows in the query.
    #[must_use]
    pub fn relation(&self) -> &str {
        &self.relation
    }

    /// Returns the rows, the same object for all readers.
    #[must_use]
    pub fn rows(&self) -> &Arc<SharedRows> {
        &self.rows
    }
}

impl DisplayAs for SharedScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedScanExec: {}", self.relation)
    }
}

impl ExecutionPlan for SharedScanExec {
    fn name(&self) -> &'static str {
        "SharedScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    /// Returns a copy that reads the same rows again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            relation: self.relation.clone(),
            is_with_query: self.is_with_query,
            is_ordered: self.is_ordered,
            rows: Arc::clone(&self.rows),
            columns: self.columns.clone(),
            expected_rows: self.expected_rows,
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn repartitioned(&self, partitions: usize, _: &ConfigOptions) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if self.is_ordered || partitions <= self.properties.output_partitioning().partition_count() {
            return Ok(None);
        }
        let properties = self.properties.as_ref().clone();
        let properties = Arc::new(properties.with_partitioning(Partitioning::UnknownPartitioning(partitions)));
        let (rows, columns, metrics) = (Arc::clone(&self.rows), self.columns.clone(), ExecutionPlanMetricsSet::new());
        Ok(Some(Arc::new(Self { relation: self.relation.clone(), rows, columns, properties, metrics, ..*self })))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (rows, metrics) = (Arc::clone(&self.rows), self.metrics.clone());
        let partitions = self.properties.output_partitioning().partition_count();
        let kept = async move {
            let kept = rows.materialize(&context, || SpillMetrics::new(&metrics, partition)).await;
            kept.map(|kept| kept.reader_share(partition, partitions)).map_err(DataFusionError::Shared)
        };
        let (columns, schema) = (self.columns.clone(), self.schema());
        let batches = stream::once(kept).try_flatten().map(move |batch| {
            let batch = batch?;
            baseline.record_output(batch.num_rows());
            let arrays = columns.iter().map(|column| Arc::clone(batch.column(*column))).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?)
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(self.schema(), batches.boxed()))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let partitions = self.properties.output_partitioning().partition_count();
        let rows = if args.partition().is_some() { self.expected_rows / partitions as f64 } else { self.expected_rows };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
        let num_rows = Precision::Inexact(rows.round() as usize);
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }
}
