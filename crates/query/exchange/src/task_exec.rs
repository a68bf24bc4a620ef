//! Root operator of the plan fragment that a task runs on a worker.

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
use scheduler::{QueryShare, QueryThreads};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error_transport::encode_error;
use crate::open_streams::OpenStreams;
use crate::task_reports::OutputCounters;

/// Batches that are buffered for a slow reader.
const BATCHES_BUFFERED_MAX: usize = 2;

/// Root operator of a task: runs its plan fragment on the query threads, in turn with other queries.
///
/// A compiled plan has one output partition. Readers request as many as were planned; the others are empty.
pub(super) struct TaskExec {
    /// Fragment to run: compiled where the engine is on.
    fragment: Arc<dyn ExecutionPlan>,
    /// Properties of the fragment as the coordinator planned it.
    properties: Arc<PlanProperties>,
    threads: Arc<QueryThreads>,
    share: Arc<QueryShare>,
    active: Arc<OpenStreams>,
    /// Cancelled when this operator is dropped: nobody can request rows any more.
    stop: CancellationToken,
    metrics: ExecutionPlanMetricsSet,
}

impl TaskExec {
    /// Returns the operator that runs `covered` with the properties of the planned fragment.
    ///
    /// # Errors
    /// If `covered` has more partitions than were planned.
    pub(super) fn new(
        covered: Arc<dyn ExecutionPlan>,
        properties: Arc<PlanProperties>,
        threads: Arc<QueryThreads>,
        share: Arc<QueryShare>,
        active: Arc<OpenStreams>,
        stop: CancellationToken,
    ) -> DfResult<Self> {
        let (planned, has) =
            (properties.partitioning.partition_count(), covered.output_partitioning().partition_count());
        if planned < has {
            return internal_err!("a compiled stage has {has} partitions, more than the {planned} planned");
        }
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { fragment: covered, properties, threads, share, active, stop, metrics })
    }
}

impl Drop for TaskExec {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ExecutionPlan for TaskExec {
    fn name(&self) -> &'static str {
        "StageExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.fragment]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let [covered] = children.as_slice() else { return internal_err!("a stage has exactly one input") };
        if !Arc::ptr_eq(covered, &self.fragment) {
            return internal_err!("the input of a stage cannot be replaced");
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
        if self.fragment.output_partitioning().partition_count() <= partition {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        }
        let (sender, receiver) = mpsc::channel(BATCHES_BUFFERED_MAX);
        let counts = OutputCounters::new(&self.metrics, partition);
        let producer = send_batches(Arc::clone(&self.fragment), partition, context, sender, counts);
        let producer = self.threads.spawn_until(&self.stop, &self.share, producer);
        let open = self.active.open();
        let rows = stream::unfold((receiver, Some((producer, open))), async |(mut receiver, producer)| {
            if let Some(batch) = receiver.recv().await {
                return Some((batch, (receiver, producer)));
            }
            // The channel is closed: all batches were received, unless the producer panicked.
            let error = producer?.0.await.err()?;
            let error = types::SqlError::internal(format!("the task of a stage panicked: {error}"));
            Some((Err(encode_error(functions::error::to_datafusion(error))), (receiver, None)))
        });
        // Exchanges poll the stream again after its end.
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.fuse())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Executes one partition and sends its batches, until the end, an error, or the reader's departure.
async fn send_batches(
    operators: Arc<dyn ExecutionPlan>,
    partition: usize,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    counts: OutputCounters,
) {
    let _took = counts.busy.timer();
    let mut rows = match operators.execute(partition, context) {
        Ok(rows) => rows,
        Err(error) => {
            // If the reader is gone, nobody needs the error.
            let _ = sender.send(Err(encode_error(error))).await;
            return;
        }
    };
    while let Some(batch) = rows.next().await {
        let batch = batch.inspect(|batch| counts.add(batch)).map_err(encode_error);
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            return;
        }
    }
}

impl DisplayAs for TaskExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

impl fmt::Debug for TaskExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageExec").field("covered", &self.fragment).finish_non_exhaustive()
    }
}
