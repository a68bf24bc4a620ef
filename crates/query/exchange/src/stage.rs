//! The operator at the top of the part of a plan that a worker runs.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::{StreamExt, stream};
use scheduler::{QueryShare, Threads};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::active::Active;
use crate::failure::leaving;
use crate::reports::Counts;

/// Batches that wait for a slow reader.
const BATCHES_AHEAD: usize = 2;

/// Runs a worker's part of a plan on the query threads, in turn with other queries. A program gives its rows in one partition; who reads asks for
/// as many as were planned, so the others are empty.
pub(super) struct StageExec {
    covered: Arc<dyn ExecutionPlan>,
    /// As the coordinator planned the part.
    properties: Arc<PlanProperties>,
    threads: Arc<Threads>,
    share: Arc<QueryShare>,
    active: Arc<Active>,
    /// Fires when nobody can ask for rows any more.
    stop: CancellationToken,
    metrics: ExecutionPlanMetricsSet,
}

impl StageExec {
    /// Runs `covered` in the place of an operator with these properties.
    pub(super) fn new(
        covered: Arc<dyn ExecutionPlan>,
        properties: Arc<PlanProperties>,
        threads: Arc<Threads>,
        share: Arc<QueryShare>,
        active: Arc<Active>,
        stop: CancellationToken,
    ) -> DfResult<Self> {
        let (planned, has) =
            (properties.partitioning.partition_count(), covered.output_partitioning().partition_count());
        if planned < has {
            return internal_err!("{has} partitions were made of {planned}");
        }
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { covered, properties, threads, share, active, stop, metrics })
    }
}

impl Drop for StageExec {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ExecutionPlan for StageExec {
    fn name(&self) -> &'static str {
        "StageExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.covered]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let [covered] = children.as_slice() else { return internal_err!("a stage has one plan") };
        if !Arc::ptr_eq(covered, &self.covered) {
            return internal_err!("a stage is not changed any more");
        }
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let schema = self.schema();
        if self.covered.output_partitioning().partition_count() <= partition {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        }
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let counts = Counts::new(&self.metrics, partition);
        let producer = produce(Arc::clone(&self.covered), partition, context, sender, counts);
        let producer = self.threads.spawn_until(&self.stop, &self.share, producer);
        let open = self.active.open();
        let rows = stream::unfold((receiver, Some((producer, open))), async |(mut receiver, producer)| {
            if let Some(batch) = receiver.recv().await {
                return Some((batch, (receiver, producer)));
            }
            // All batches are here, unless the producer died.
            let error = producer?.0.await.err()?;
            let error = types::SqlError::internal(format!("a task crashed: {error}"));
            Some((Err(leaving(functions::error::to_datafusion(error))), (receiver, None)))
        });
        // Exchanges ask once more after the end.
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.fuse())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

async fn produce(
    operators: Arc<dyn ExecutionPlan>,
    partition: usize,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    counts: Counts,
) {
    let _took = counts.busy.timer();
    let mut rows = match operators.execute(partition, context) {
        Ok(rows) => rows,
        Err(error) => {
            // A reader that has gone does not miss it.
            let _ = sender.send(Err(leaving(error))).await;
            return;
        }
    };
    while let Some(batch) = rows.next().await {
        let batch = batch.inspect(|batch| counts.add(batch)).map_err(leaving);
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            return;
        }
    }
}

impl DisplayAs for StageExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

impl fmt::Debug for StageExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageExec").field("covered", &self.covered).finish_non_exhaustive()
    }
}
