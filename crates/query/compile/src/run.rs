//! A program as a stream of rows.

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

/// Batches that wait for a slow reader.
const BATCHES_AHEAD: usize = 2;

/// Starts a program; its rows come as they are made. Dropping the stream ends it.
pub(super) fn start(
    lowered: Arc<Lowered>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    measured: &Arc<Measured>,
) -> BoxStream<'static, DfResult<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    // With the stream: the driver itself may be busy with a table for long.
    let stop = StopOnDrop(Arc::default());
    let driving = drive(lowered, schema, context, sender, Arc::clone(measured), StopOnDrop(Arc::clone(&stop.0)));
    let driver = AbortOnDropHandle::new(tokio::spawn(beside(driving)));
    let reading = (receiver, Some(driver), stop);
    let rows = stream::unfold(reading, async |(mut receiver, driver, stop)| {
        if let Some(batch) = receiver.recv().await {
            return Some((batch, (receiver, driver, stop)));
        }
        // All batches are here, unless the driver died.
        let error = driver?.await.err()?;
        let error = match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => DataFusionError::Execution(format!("a program was stopped: {error}")),
        };
        Some((Err(error), (receiver, None, stop)))
    });
    rows.boxed()
}

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
        // A reader that has gone misses nothing; any other is told that rows are missing.
        Err(Ended::Stopped) => {
            let error = DataFusionError::Internal("a program was stopped before its end".to_owned());
            let _ = sender.send(Err(error)).await;
        }
        Err(Ended::Failed(error)) => {
            let _ = sender.send(Err(error)).await;
        }
    }
}

/// Tells workers, which may be busy with a batch for long, that their rows are not wanted any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
