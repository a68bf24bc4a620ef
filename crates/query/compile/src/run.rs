//! A program as a stream of rows, and the operators that it stands for where the engine gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, lit};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use scheduler::beside;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::cover::{Sorts, cover_with};
use crate::ended::Ended;
use crate::measure::{self, Measured};
use crate::once::{reads_once, undecided};
use crate::output::Output;
use crate::pipelines::Run;
use crate::plan::Lowered;
use crate::refusals::Refusals;

/// Batches that wait for a slow reader.
const BATCHES_AHEAD: usize = 2;

/// Starts a program; its rows come as they are made. Dropping the stream ends it.
pub(super) fn start(
    lowered: Arc<Lowered>,
    covered: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    measured: &Arc<Measured>,
) -> BoxStream<'static, DfResult<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    // With the stream: the driver itself may be busy with a table for long.
    let stop = StopOnDrop(Arc::default());
    let driving = drive(lowered, covered, context, sender, Arc::clone(measured), StopOnDrop(Arc::clone(&stop.0)));
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
    covered: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    measured: Arc<Measured>,
    stop: StopOnDrop,
) {
    let sent = Arc::new(AtomicUsize::new(0));
    let (sorts, now) = (lowered.sorts(), measure::now());
    measured.begin(&*now);
    let run = Run {
        limits: (0..lowered.limits).map(|_| AtomicU64::new(0)).collect(),
        lowered,
        context: Arc::clone(&context),
        output: Arc::new(Output { schema: covered.schema(), sender: sender.clone(), sent: Arc::clone(&sent) }),
        built: Mutex::default(),
        stop: Arc::clone(&stop.0),
        measured: Arc::clone(&measured),
        now,
        ahead: Mutex::default(),
        begun: Mutex::default(),
        best: Mutex::default(),
        held: Mutex::default(),
    };
    let ended = Arc::new(run).pipelines().await;
    let reason = match ended {
        Ok(()) => return,
        Err(Ended::Failed(error)) => {
            // A reader that has gone does not miss it.
            let _ = sender.send(Err(error)).await;
            return;
        }
        Err(Ended::Undecided(engine::Error::Stopped)) if sender.is_closed() => return,
        // What has spilled all that can be spilled would do no better as operators, which would begin again.
        Err(Ended::Undecided(engine::Error::Memory(what))) if 0 < sent.load(Ordering::Relaxed) => {
            let error = format!("No memory left for {what}");
            let _ = sender.send(Err(DataFusionError::ResourcesExhausted(error))).await;
            return;
        }
        Err(Ended::Undecided(reason)) => reason,
    };
    if reads_once(&covered) {
        let _ = sender.send(Err(undecided(&reason))).await;
        return;
    }
    // Operators sort with less, joins and groups are still programs'.
    let needs_room = sorts && matches!(reason, engine::Error::Memory(_));
    tracing::debug!(%reason, "the engine leaves a part of a query to its operators");
    let given = sent.load(Ordering::Relaxed);
    // Operators below may have run for the program, and exchanges and joins run once.
    let rows = reset_plan_states(covered).and_then(forgotten).and_then(|fresh| {
        let fresh = if needs_room { cover_with(fresh, Sorts::Operators, &Refusals::default())? } else { fresh };
        measured.leave_to(&fresh);
        execute_stream(fresh, context)
    });
    let outcome = match rows {
        Ok(rows) => instead(rows, &sender, given).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        let _ = sender.send(Err(error)).await;
    } else if 0 < given {
        let error = format!("a part of the rows was given before the engine gave up: {reason}");
        let _ = sender.send(Err(DataFusionError::Internal(error))).await;
    }
}

/// The plan with filters that know nothing of an earlier run: operators that learn have made others when they were reset.
fn forgotten(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let forget = |part: Arc<dyn PhysicalExpr>| match part.is::<DynamicFilterPhysicalExpr>() {
        true => Ok(Transformed::yes(lit(true))),
        false => Ok(Transformed::no(part)),
    };
    let forgotten = plan.transform_up(|operator| {
        let Some(filter) = operator.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(operator)) };
        let predicate = Arc::clone(filter.predicate()).transform_up(forget)?;
        if !predicate.transformed {
            return Ok(Transformed::no(operator));
        }
        let filter = FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?;
        Ok(Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>))
    });
    forgotten.data()
}

/// The rows of the operators themselves; where some of the engine's were given already, only what goes wrong.
async fn instead(
    mut rows: SendableRecordBatchStream,
    sender: &mpsc::Sender<DfResult<RecordBatch>>,
    given: usize,
) -> DfResult<()> {
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if given == 0 && sender.send(Ok(batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Tells workers, which may be busy with a batch for long, that their rows are not wanted any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl From<DataFusionError> for Ended {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}
