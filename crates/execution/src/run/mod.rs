//! How a query runs: planned and executed on the query threads, its batches handed over one by one.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::{OutputColumn, QueryPlan};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use exchange::{Distribution, Prepared, Purpose, QueryResources, Spread};
use functions::error::from_datafusion;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use scheduler::{Lease, QueryMemory, QueryShare, Threads};
use settings::Settings;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use types::interrupt::canceled;
use types::{Condition, ObjectNames, QueryId, SqlError, SqlResult};
use value_codec::encode::TextStyle;

use crate::{Execution, Progress, Ran};

mod attempts;
#[cfg(test)]
mod memory_tests;
mod prepare;
#[cfg(test)]
mod tests;

pub(crate) use attempts::Attempts;
#[cfg(test)]
pub(crate) use prepare::operators;

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
    /// The workers among which it may be divided; `None` where it runs on the lease alone.
    pub distribution: Option<Arc<Distribution>>,
}

impl RunContext {
    /// The same, in this process alone: for what is fed rows as they come, and cannot begin again.
    pub(crate) fn here(&self) -> Self {
        Self { distribution: None, ..self.clone() }
    }

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

impl RunContext {
    /// The context of a plan's operators: the query's own memory of what all share, or of its worker's part of it.
    pub(crate) fn task(&self, state: &SessionState) -> Arc<TaskContext> {
        self.resources().task(state)
    }

    /// What its query has to run with.
    pub(crate) fn resources(&self) -> QueryResources<'_> {
        QueryResources {
            cancel: &self.cancel,
            settings: &self.settings,
            share: &self.share,
            memory: &self.memory,
            lease: self.lease.as_deref(),
        }
    }
}

impl Execution {
    /// Plans the operators of `plan` and starts them; rows come as they are asked for. On workers the first are waited for: until there are any, the
    /// query can begin again.
    ///
    /// # Errors
    /// What constant folding and scans find while they are planned; `57014` when cancelled.
    pub async fn query(self: &Arc<Self>, plan: &QueryPlan, context: &RunContext) -> SqlResult<RowStream> {
        self.query_placed(plan, context).await.map(|(rows, _)| rows)
    }

    /// As [`Execution::query`], with where it runs if its statement may use workers of other processes.
    ///
    /// # Errors
    /// As [`Execution::query`].
    pub async fn query_placed(
        self: &Arc<Self>,
        plan: &QueryPlan,
        context: &RunContext,
    ) -> SqlResult<(RowStream, Option<Spread>)> {
        let columns = plan.columns.clone();
        let mut attempts = Attempts::of(context);
        loop {
            let prepared = match self.prepared(plan, context, &attempts, Purpose::Run).await {
                Ok(prepared) => prepared,
                Err(error) => {
                    attempts.after(error)?;
                    continue;
                }
            };
            let spread = prepared.spread();
            let mut stream = self.stream(prepared.operators, prepared.task, context).fuse();
            if !matches!(spread, Some(Spread::Worker(_) | Spread::Workers(_))) {
                return Ok((RowStream { columns, stream: stream.boxed() }, spread));
            }
            match stream.next().await {
                Some(Err(error)) => attempts.after(error)?,
                first => {
                    let again = (Arc::clone(self), plan.clone(), context.clone(), attempts);
                    let rows = (stream::iter(first).chain(stream), Some(again));
                    let rows = stream::unfold(rows, async |(mut rows, mut again)| {
                        let batch = match rows.next().await? {
                            Err(error) => {
                                // The worker is free as soon as there is nothing to run.
                                let (execution, plan, context, attempts) = again.take()?;
                                Err(execution.cause(error, &plan, &context, attempts).await)
                            }
                            rows => rows,
                        };
                        Some((batch, (rows, again)))
                    });
                    return Ok((RowStream { columns, stream: rows.boxed() }, spread));
                }
            }
        }
    }

    /// Why a query failed that had given rows of workers. What could not be decided there is found by running it again in the instance, whose rows are
    /// dropped.
    async fn cause(&self, error: SqlError, plan: &QueryPlan, context: &RunContext, mut attempts: Attempts) -> SqlError {
        attempts.note(&error);
        let is_about_memory = error.condition == Condition::OutOfMemory;
        if is_about_memory || !attempts.is_undecided(&error) || attempts.after(error.clone()).is_err() {
            return error;
        }
        let mut rows = match self.prepared(plan, context, &attempts, Purpose::Run).await {
            Ok(prepared) => self.stream(prepared.operators, prepared.task, context),
            Err(found) => return found,
        };
        while let Some(batch) = rows.next().await {
            if let Err(found) = batch {
                return found;
            }
        }
        error
    }

    /// All rows of `plan`.
    pub(crate) async fn collect(&self, plan: &QueryPlan, context: &RunContext) -> SqlResult<Vec<RecordBatch>> {
        let mut attempts = Attempts::of(context);
        loop {
            let collected = match self.prepared_to_be_noted(plan, context, &attempts).await {
                Ok(prepared) => {
                    let rows = datafusion::physical_plan::collect(prepared.operators, prepared.task);
                    self.run(context, async move { rows.await.map_err(from_datafusion) }).await
                }
                Err(error) => Err(error),
            };
            match collected {
                Ok(rows) => return Ok(rows),
                Err(error) => attempts.after(error)?,
            }
        }
    }

    /// The rows of `operators`, all partitions as one.
    pub(crate) fn stream(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        context: &RunContext,
    ) -> BoxStream<'static, SqlResult<RecordBatch>> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let producer =
            self.threads_of(context).spawn_until(&context.cancel, &context.share, produce(operators, task, sender));
        let (cancel, memory) = (context.cancel.clone(), Arc::clone(&context.memory));
        let reading = Reading { receiver, producer: Some(producer), cancel, memory, lease: context.lease.clone() };
        stream::unfold(reading, async |mut reading| Some((reading.next().await?, reading))).boxed()
    }

    /// What runs a plan. That of a large one is made by the threads that plan, so that it keeps no query thread.
    pub(crate) async fn prepared(
        &self,
        plan: &QueryPlan,
        context: &RunContext,
        attempts: &Attempts,
        purpose: Purpose,
    ) -> SqlResult<Prepared> {
        let (attempts, own, about) = (attempts.clone(), plan.clone(), context.clone());
        let preparing = async move { attempts.prepare(&own, &about, purpose).await };
        if plan.is_small() {
            return self.run(context, preparing).await;
        }
        // What it has to run first has its tasks among the queries'.
        let runtime = self.threads_of(context).handle();
        let planning = self.planning().run(move || runtime.block_on(preparing));
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(canceled()),
            prepared = planning => prepared.map_err(|error| context.memory.explained(error)),
        }
    }

    /// As [`Execution::prepared`], of what runs at once; how long that took is noted.
    pub(crate) async fn prepared_to_be_noted(
        &self,
        plan: &QueryPlan,
        context: &RunContext,
        attempts: &Attempts,
    ) -> SqlResult<Prepared> {
        let start = self.clock.monotonic();
        let prepared = self.prepared(plan, context, attempts, Purpose::Run).await?;
        context.ran.note(&prepared, self.clock.monotonic().saturating_sub(start));
        Ok(prepared)
    }

    fn threads_of<'a>(&'a self, context: &'a RunContext) -> &'a Threads {
        context.lease.as_ref().map_or(&self.threads, |lease| lease.threads())
    }

    /// Runs `task` on the query threads; a cancelled or dropped run leaves nothing behind.
    ///
    /// # Errors
    /// Those of the task, and `57014`.
    pub async fn run<T: Send + 'static>(
        &self,
        context: &RunContext,
        task: impl Future<Output = SqlResult<T>> + Send + 'static,
    ) -> SqlResult<T> {
        let task = self.threads_of(context).spawn_until(&context.cancel, &context.share, task);
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

async fn produce(
    operators: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    sender: mpsc::Sender<SqlResult<RecordBatch>>,
) {
    // A query counts as running on its worker as long as its session is there.
    let _session = Arc::clone(&task);
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
