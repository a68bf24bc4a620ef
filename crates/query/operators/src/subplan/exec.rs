//! Operator that evaluates expressions with correlated subqueries.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionMapping;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::{StreamExt, stream};

use super::expression::AsyncExpression;
use super::subquery_results::SubqueryContext;
use crate::shared_rows::SharedRowsRegistry;

/// Number of rows per output batch: small, so that few subqueries run for rows beyond a LIMIT.
const BATCH_ROWS: usize = 256;

/// Operator that appends one column per expression to its input. While a subquery runs, its task waits asynchronously;
/// no thread is blocked.
#[derive(Debug)]
pub(crate) struct SubPlanExec {
    input: Arc<dyn ExecutionPlan>,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    /// Shared rows of the run, which subqueries may read.
    rows: Option<Arc<SharedRowsRegistry>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SubPlanExec {
    /// Creates the operator; `schema` has the columns of `input` followed by those of `exprs`.
    pub(super) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        rows: Option<Arc<SharedRowsRegistry>>,
        schema: SchemaRef,
    ) -> DfResult<Self> {
        let passed: Vec<usize> = (0..input.schema().fields().len()).collect();
        let mapping = ProjectionMapping::from_indices(&passed, &input.schema())?;
        let properties = PlanProperties::new(
            input.equivalence_properties().project(&mapping, Arc::clone(&schema)),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        Ok(Self { input, exprs, rows, schema, properties, metrics: ExecutionPlanMetricsSet::new() })
    }
}

impl DisplayAs for SubPlanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubPlanExec")
    }
}

impl ExecutionPlan for SubPlanExec {
    fn name(&self) -> &'static str {
        "SubPlanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("SubPlanExec needs one input") };
        Ok(Arc::new(Self::try_new(input, self.exprs.clone(), self.rows.clone(), Arc::clone(&self.schema))?))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        for expr in &self.exprs {
            if visit(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let input_schema = self.input.schema();
        let run = SubqueryContext { context, rows: self.rows.clone() };
        let compile = |expr: &Arc<dyn PhysicalExpr>| AsyncExpression::compile(expr, &input_schema, &run);
        let exprs = self.exprs.iter().map(compile).collect::<DfResult<Vec<_>>>()?;
        let rows = SubPlanStream {
            input,
            exprs,
            schema: Arc::clone(&self.schema),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            current: None,
        };
        let batches = stream::try_unfold(rows, async |mut rows| Ok(rows.next().await?.map(|batch| (batch, rows))));
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), Box::pin(batches)))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Execution state of one partition.
struct SubPlanStream {
    input: SendableRecordBatchStream,
    exprs: Vec<AsyncExpression>,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    /// Input batch, with the number of its rows that are done.
    current: Option<(RecordBatch, usize)>,
}

impl SubPlanStream {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            if let Some((batch, done)) = self.current.take()
                && done < batch.num_rows()
            {
                let count = BATCH_ROWS.min(batch.num_rows() - done);
                let part = batch.slice(done, count);
                self.current = Some((batch, done + count));
                return self.compute_batch(&part).await.map(Some);
            }
            let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
            self.current = Some((batch, 0));
        }
    }

    async fn compute_batch(&mut self, batch: &RecordBatch) -> DfResult<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for expr in &mut self.exprs {
            columns.push(expr.evaluate(batch).await?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        self.metrics.record_output(batch.num_rows());
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}
