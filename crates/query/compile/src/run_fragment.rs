//! Runs a fragment as a stream of batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use scheduler::in_same_query;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::explain_metrics::{self, FragmentMetrics};
use crate::fragment_output::Output;
use crate::plan::CompiledFragment;
use crate::run_error::RunError;
use crate::run_pipelines::FragmentRun;

/// Batches that are buffered for a slow reader.
const BATCHES_BUFFERED_MAX: usize = 2;

/// Starts a fragment and returns its rows as a stream. Dropping the stream stops the fragment.
pub(super) fn start(
    lowered: Arc<CompiledFragment>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    measured: &Arc<FragmentMetrics>,
) -> BoxStream<'static, DfResult<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_BUFFERED_MAX);
    // Dropped with the stream: the driver itself may be busy with a hash table for long.
    let stop = StopOnDrop(Arc::default());
    let driving = drive(lowered, schema, context, sender, Arc::clone(measured), StopOnDrop(Arc::clone(&stop.0)));
    let driver = AbortOnDropHandle::new(tokio::spawn(in_same_query(driving)));
    let reading = (receiver, Some(driver), stop);
    let rows = stream::unfold(reading, async |(mut receiver, driver, stop)| {
        if let Some(batch) = receiver.recv().await {
            return Some((batch, (receiver, driver, stop)));
        }
        // The channel is closed: all batches were received, unless the driver panicked.
        let error = driver?.await.err()?;
        let error = match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => {
                DataFusionError::Execution(format!("the task that runs a fragment's pipelines was aborted: {error}"))
            }
        };
        Some((Err(error), (receiver, None, stop)))
    });
    rows.boxed()
}

/// Runs all pipelines of a fragment and reports how they ended.
async fn drive(
    lowered: Arc<CompiledFragment>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    measured: Arc<FragmentMetrics>,
    stop: StopOnDrop,
) {
    let now = explain_metrics::run_clock();
    measured.begin(&*now);
    let run = FragmentRun {
        limit_counters: (0..lowered.limit_count).map(|_| AtomicU64::new(0)).collect(),
        compiled: lowered,
        context,
        output: Arc::new(Output { schema, sender: sender.clone() }),
        results: Mutex::default(),
        stop: Arc::clone(&stop.0),
        fragment_metrics: measured,
        clock: now,
        early_workers: Mutex::default(),
        union_sinks: Mutex::default(),
        union_probe_partitions: Mutex::default(),
        top_k_bound: Mutex::default(),
        result_memory: Mutex::default(),
    };
    match Arc::new(run).run_all().await {
        Ok(()) => {}
        // If the reader is gone, nobody gets the error; any other reader has to know that rows are missing.
        Err(RunError::Stopped) => {
            let error = DataFusionError::Internal("a fragment was stopped before its last row".to_owned());
            let _ = sender.send(Err(error)).await;
        }
        Err(RunError::Failed(error)) => {
            let _ = sender.send(Err(error)).await;
        }
    }
}

/// Stops the workers on drop: they may be busy with a batch for long.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
