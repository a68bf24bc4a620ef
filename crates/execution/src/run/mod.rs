//! How a query runs: planned and executed on the query threads, its batches handed over one by one.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use planner::error::from_datafusion;
use planner::stop::canceled;
use planner::{Division, Optimized, OutputColumn, Phase, QueryPlan, Settings};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use types::{Condition, ObjectNames, QueryId, SqlError, SqlResult};

use crate::cover::{cover, is_whole};
use crate::encode::TextStyle;
use crate::threads::{QueryShare, Threads};
use crate::{Execution, Lease, Progress, QueryMemory, Ran};

#[cfg(test)]
mod tests;

/// Batches that wait for a slow reader: with those in the operators' hands all that a result of any size needs.
const BATCHES_AHEAD: usize = 2;

/// The surroundings of one run.
#[derive(Debug, Clone)]
pub struct RunContext {
    pub query_id: QueryId,
    /// Fires when the run shall stop: everything it waits for answers 57014 at once.
    pub cancel: CancellationToken,
    pub settings: Arc<Settings>,
    /// Names of catalog objects, as the statement sees them.
    pub names: Arc<dyn ObjectNames>,
    pub progress: Arc<Progress>,
    /// What it gets of the threads.
    pub share: Arc<QueryShare>,
    pub ran: Arc<Ran>,
    pub memory: Arc<QueryMemory>,
    /// The worker that it runs on; `None` for what needs none: the process itself.
    pub lease: Option<Arc<Lease>>,
}

impl RunContext {
    /// How the session shows values.
    #[must_use]
    pub fn text_style(&self) -> TextStyle {
        TextStyle { zone: self.settings.zone(), names: Arc::clone(&self.names) }
    }
}

/// The rows of a query, made as they are asked for. Dropping it stops the query.
pub struct RowStream {
    pub columns: Vec<OutputColumn>,
    /// Ends after its first error.
    pub stream: BoxStream<'static, SqlResult<RecordBatch>>,
}

impl Execution {
    /// Plans the operators of `plan` and starts them; rows come as they are asked for.
    ///
    /// # Errors
    /// What constant folding and scans find while they are planned; `57014` when cancelled.
    pub async fn query(&self, plan: &QueryPlan, context: &RunContext) -> SqlResult<RowStream> {
        let columns = plan.columns.clone();
        let task = self.task(&plan.state, context);
        let (plan, stop) = (plan.clone(), context.cancel.clone());
        let is_on = context.settings.engine();
        let prepared = self.run(context, async move { operators(&plan, &stop, is_on).await }).await?;
        Ok(RowStream { columns, stream: self.stream(prepared.operators, task, context) })
    }

    /// All rows of `plan`.
    pub(crate) async fn collect(&self, plan: &QueryPlan, context: &RunContext) -> SqlResult<Vec<RecordBatch>> {
        let (plan, stop) = (plan.clone(), context.cancel.clone());
        let (clock, ran) = (Arc::clone(&self.clock), Arc::clone(&context.ran));
        let is_on = context.settings.engine();
        let task = self.task(&plan.state, context);
        self.run(context, async move {
            let start = clock.monotonic();
            let prepared = operators(&plan, &stop, is_on).await?;
            ran.note(&prepared, clock.monotonic().saturating_sub(start));
            datafusion::physical_plan::collect(prepared.operators, task).await.map_err(from_datafusion)
        })
        .await
    }

    /// The rows of `operators`, all partitions as one.
    pub(crate) fn stream(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        context: &RunContext,
    ) -> BoxStream<'static, SqlResult<RecordBatch>> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let producer = self.threads_of(context).spawn(&context.share, produce(operators, task, sender));
        let (cancel, memory) = (context.cancel.clone(), Arc::clone(&context.memory));
        let reading = Reading { receiver, producer: Some(producer), cancel, memory, lease: context.lease.clone() };
        stream::unfold(reading, async |mut reading| Some((reading.next().await?, reading))).boxed()
    }

    fn threads_of<'a>(&'a self, context: &'a RunContext) -> &'a Threads {
        context.lease.as_ref().map_or(&self.threads, |lease| &lease.threads)
    }

    /// Runs `task` on the query threads; a cancelled or dropped run leaves nothing behind.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        context: &RunContext,
        task: impl Future<Output = SqlResult<T>> + Send + 'static,
    ) -> SqlResult<T> {
        let task = self.threads_of(context).spawn(&context.share, task);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(canceled()),
            ended = task => {
                let ended = ended.unwrap_or_else(|error| Err(crashed(error)));
                ended.map_err(|error| context.memory.explained(error))
            }
        }
    }
}

/// A query that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) operators: Arc<dyn ExecutionPlan>,
    /// What they were made of: EXPLAIN asks what was expected of it.
    pub(crate) optimized: Arc<Optimized>,
}

impl Prepared {
    fn new(operators: Arc<dyn ExecutionPlan>, optimized: Optimized) -> Self {
        Self { operators, optimized: Arc::new(optimized) }
    }
}

/// The operators that run a query; what the engine can run of them is its own, if it is on.
pub(crate) async fn operators(plan: &QueryPlan, stop: &CancellationToken, is_on: bool) -> SqlResult<Prepared> {
    let optimized = plan.optimized(stop).await?;
    if !is_on {
        let operators = plan.operators(&optimized, Division::Threads, stop).await?;
        return Ok(Prepared::new(operators, optimized));
    }
    if optimized.has_work() && !optimized.hides_plans().map_err(from_datafusion)? {
        let again = optimized.anew().map_err(from_datafusion)?;
        let covered = programs(plan, plan.operators(&again, Division::None, stop).await?)?;
        if is_whole(&covered) {
            return Ok(Prepared::new(covered, again));
        }
    }
    let covered = programs(plan, plan.operators(&optimized, Division::Threads, stop).await?)?;
    Ok(Prepared::new(covered, optimized))
}

fn programs(plan: &QueryPlan, operators: Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = plan.phases.begin();
    let covered = cover(operators);
    plan.phases.end(Phase::Programs, begun);
    covered.map_err(from_datafusion)
}

async fn produce(
    operators: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    sender: mpsc::Sender<SqlResult<RecordBatch>>,
) {
    let mut rows = match execute_stream(operators, task) {
        Ok(rows) => rows,
        Err(error) => {
            // A reader that has gone does not miss it.
            let _ = sender.send(Err(from_datafusion(error))).await;
            return;
        }
    };
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(from_datafusion);
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            return;
        }
    }
}

/// The reader's end of a running query.
struct Reading {
    receiver: mpsc::Receiver<SqlResult<RecordBatch>>,
    /// `None` once the stream has ended.
    producer: Option<AbortOnDropHandle<()>>,
    cancel: CancellationToken,
    memory: Arc<QueryMemory>,
    /// As long as there is something to run.
    lease: Option<Arc<Lease>>,
}

impl Reading {
    async fn next(&mut self) -> Option<SqlResult<RecordBatch>> {
        let producer = self.producer.as_mut()?;
        let next = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Err(canceled())),
            batch = self.receiver.recv() => match batch {
                Some(batch) => Some(batch.map_err(|error| self.memory.explained(error))),
                // All batches are here, unless the producer died.
                None => producer.await.err().map(|error| Err(crashed(error))),
            },
        };
        if !matches!(next, Some(Ok(_))) {
            (self.producer, self.lease) = (None, None);
        }
        next
    }
}

/// `XX000`: an operator panicked.
fn crashed(error: JoinError) -> SqlError {
    match error.try_into_panic() {
        Ok(panic) => SqlError::internal(format!("the query crashed: {}", panic_text(&*panic))),
        Err(_) => SqlError::new(Condition::AdminShutdown, "terminating the query: the server is shutting down"),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
