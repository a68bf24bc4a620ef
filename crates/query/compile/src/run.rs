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
use scheduler::beside;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::ended::Ended;
use crate::measure::{self, Measured};
use crate::output::Output;
use crate::pipelines::Run;
use crate::plan::Lowered;

/// Batches that are buffered for a slow reader.
const BATCHES_AHEAD: usize = 2;

/// Starts a fragment and returns its rows as a stream. Dropping the stream stops the fragment.
pub(super) fn start(
    lowered: Arc<Lowered>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    measured: &Arc<Measured>,
) -> BoxStream<'static, DfResult<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    // Dropped with the stream: the driver itself may be busy with a hash table for long.
    let stop = StopOnDrop(Arc::default());
    let driving = drive(lowered, schema, context, sender, Arc::clone(measured), StopOnDrop(Arc::clone(&stop.0)));
    let driver = AbortOnDropHandle::new(tokio::spawn(beside(driving)));
    let reading = (receiver, Some(driver), stop);
    let rows = stream::unfold(reading, async |(mut receiver, driver, stop)| {
        if let Some(batch) = receiver.recv().await {
            return Some((batch, (receiver, driver, stop)));
        }
        // The channel is closed: all batches were received, unless the driver panicked.
        let error = driver?.await.err()?;
        let error = match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => DataFusionError::Execution(format!("the driver of a fragment was aborted: {error}")),
        };
        Some((Err(error), (receiver, None, stop)))
    });
    rows.boxed()
}

/// Runs all pipelines of a fragment and reports how they ended.
async fn drive(
    lowered: Arc<Lowered>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    measured: Arc<Measured>,
    stop: StopOnDrop,
) {
    let now = measure::now();
    measured.begin(&*now);
    let run = Run {
        limits: (0..lowered.limits).map(|_| AtomicU64::new(0)).collect(),
        lowered,
        context,
        output: Arc::new(Output { schema, sender: sender.clone() }),
        built: Mutex::default(),
        stop: Arc::clone(&stop.0),
        measured,
        now,
        ahead: Mutex::default(),
        begun: Mutex::default(),
        probe_parts: Mutex::default(),
        best: Mutex::default(),
        held: Mutex::default(),
    };
    match Arc::new(run).pipelines().await {
        Ok(()) => {}
        // If the reader is gone, nobody gets the error; any other reader has to know that rows are missing.
        Err(Ended::Stopped) => {
            let error = DataFusionError::Internal("a fragment was stopped before its last row".to_owned());
            let _ = sender.send(Err(error)).await;
        }
        Err(Ended::Failed(error)) => {
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
