//! Runs plans on what a process has for queries: threads, memory, and room for what they spill.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::{QueryPlan, Step, count_of};
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use exchange::{Prepared, Purpose, Spread};
use functions::error::from_datafusion;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use scheduler::{Config, PlanningThreads, Threads, bound_values, keep_spill_room, query_threads, runtime};
use tokio::sync::mpsc;
use tracing::{Instrument, Span};
use types::interrupt::canceled;
use types::{Clock, Health, Reserve, SqlResult};

use crate::context::RunContext;
use crate::prepare::prepare;
use crate::row_stream::{BATCHES_AHEAD, Reading, RowStream, crashed, produce};

/// Runs plans: planned and executed on the query threads, their batches handed over one by one.
pub struct Executor {
    /// For what runs without a worker.
    threads: Arc<Threads>,
    /// For what comes before statements run.
    planning: Arc<PlanningThreads>,
    runtime: Arc<RuntimeEnv>,
    clock: Arc<dyn Clock>,
    parts: usize,
    cores: usize,
    memory_bytes: usize,
    spill_bytes_max: u64,
}

impl Executor {
    /// Starts the threads and cleans the spill folder.
    ///
    /// # Errors
    /// `58030` where the spill folder cannot be used, or threads cannot be started.
    pub fn start(config: &Config, clock: &Arc<dyn Clock>) -> SqlResult<Self> {
        bound_values(config.memory_bytes, config.cache_bytes + config.fragment_cache_bytes);
        Ok(Self {
            runtime: runtime(config.memory_bytes, &config.spill())?,
            threads: Arc::new(query_threads(config, clock)?),
            planning: Arc::new(PlanningThreads::new(config.threads, config.planning_memory_bytes(), clock)),
            clock: Arc::clone(clock),
            parts: config.parts(),
            cores: config.threads,
            memory_bytes: config.memory_bytes,
            spill_bytes_max: config.spill_bytes_max,
        })
    }

    /// The threads that plan.
    #[must_use]
    pub fn planning(&self) -> &Arc<PlanningThreads> {
        &self.planning
    }

    /// The threads that run operators.
    #[must_use]
    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// The number of cores that these are for.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Memory of all running operators together.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Parts of one plan that run at the same time where no setting says how many.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Memory and spill space, shared by all plans.
    #[must_use]
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime)
    }

    /// Lets operators leave the reserve of the spill folder's disk as it is, for as long as the server runs: who needs more fails with 53100.
    pub fn keep_spill_room<'a>(&'a self, reserve: &'a Reserve, health: &'a Health) -> BoxFuture<'a, ()> {
        let most = || self.spill_bytes_max;
        Box::pin(keep_spill_room(&self.runtime.disk_manager, reserve, most, &self.clock, health))
    }
}

impl Executor {
    /// Plans the operators of `plan` and starts them; rows come as they are asked for. On workers the first are waited for: until there are any, the
    /// statement can begin again.
    ///
    /// # Errors
    /// What constant folding and scans find while they are planned; `57014` when cancelled.
    pub fn query<'a>(
        self: &'a Arc<Self>,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<RowStream>> {
        Box::pin(async move { self.query_placed_unboxed(plan, context).await.map(|(rows, _)| rows) })
    }

    /// As [`Executor::query`], with where it runs if its statement may use workers of other processes.
    ///
    /// # Errors
    /// As [`Executor::query`].
    pub fn query_placed<'a>(
        self: &'a Arc<Self>,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<(RowStream, Option<Spread>)>> {
        Box::pin(self.query_placed_unboxed(plan, context))
    }

    async fn query_placed_unboxed(
        self: &Arc<Self>,
        plan: &QueryPlan,
        context: &RunContext,
    ) -> SqlResult<(RowStream, Option<Spread>)> {
        let columns = plan.columns.clone();
        let prepared = self.prepared_unboxed(plan, context, Purpose::Run).await?;
        let spread = prepared.spread();
        let mut stream = self.stream(prepared.operators, prepared.task, context).fuse();
        if !matches!(spread, Some(Spread::Worker(_) | Spread::Workers(_))) {
            return Ok((RowStream { columns, stream: stream.boxed() }, spread));
        }
        let first = stream.next().await.transpose()?;
        let rows = stream::iter(first.map(Ok)).chain(stream);
        let distribution = context.distribution.clone();
        let rows = rows.inspect_err(move |error| {
            if let Some(distribution) = &distribution {
                distribution.report_lost_worker(error);
            }
        });
        Ok((RowStream { columns, stream: rows.boxed() }, spread))
    }

    /// All rows of `plan`.
    pub fn collect<'a>(
        &'a self,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<Vec<RecordBatch>>> {
        Box::pin(self.collect_unboxed(plan, context))
    }

    async fn collect_unboxed(&self, plan: &QueryPlan, context: &RunContext) -> SqlResult<Vec<RecordBatch>> {
        let prepared = self.prepared_to_be_noted_unboxed(plan, context).await?;
        let rows = datafusion::physical_plan::collect(prepared.operators, prepared.task);
        let running = async move { rows.await.map_err(from_datafusion) };
        self.run(context, running.instrument(Step::Run.span())).await
    }

    /// The rows of `operators`, all partitions as one.
    pub fn stream(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        context: &RunContext,
    ) -> BoxStream<'static, SqlResult<RecordBatch>> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let producing = produce(operators, task, sender).instrument(Step::Run.span());
        let producer = self.threads_of(context).spawn_until(&context.cancel, &context.share, producing);
        let (cancel, memory) = (context.cancel.clone(), Arc::clone(&context.memory));
        let reading = Reading { receiver, producer: Some(producer), cancel, memory, lease: context.lease.clone() };
        stream::unfold(reading, async |mut reading| Some((reading.next().await?, reading))).boxed()
    }

    /// What runs a plan. That of a large one is made by the threads that plan, so that it keeps no query thread.
    pub fn prepared<'a>(
        &'a self,
        plan: &'a QueryPlan,
        context: &'a RunContext,
        purpose: Purpose,
    ) -> BoxFuture<'a, SqlResult<Prepared>> {
        Box::pin(self.prepared_unboxed(plan, context, purpose))
    }

    async fn prepared_unboxed(&self, plan: &QueryPlan, context: &RunContext, purpose: Purpose) -> SqlResult<Prepared> {
        let counted = match plan.asks_counts() {
            true => Some(Box::pin(self.with_counts(plan, context, purpose)).await?),
            false => None,
        };
        let plan = counted.as_ref().unwrap_or(plan);
        // Once for the workers and for the instance, whichever it is that runs it in the end.
        let (own, about) = (plan.clone().optimized_once(), context.clone());
        let preparing = async move { prepare(&own, &about, purpose).await }.instrument(Span::current());
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

    /// The plan with the counts of LIMIT and OFFSET that subqueries give: queries before the query, which run in this process with its memory and
    /// end with it. None runs for a plan that is only shown.
    async fn with_counts(&self, plan: &QueryPlan, context: &RunContext, purpose: Purpose) -> SqlResult<QueryPlan> {
        if purpose == Purpose::Show {
            return plan.with_unknown_counts().await;
        }
        let here = &context.here();
        let count = |count: QueryPlan| async move {
            let prepared = self.prepared(&count, here, Purpose::Run).await?;
            let rows = datafusion::physical_plan::collect(prepared.operators, prepared.task);
            let running = async move { rows.await.map_err(from_datafusion) };
            count_of(&self.run(context, running.instrument(Step::Run.span())).await?)
        };
        plan.with_counts(count).instrument(Step::EvaluateSubplans.span()).await
    }

    /// As [`Executor::prepared`], of what runs at once; how long that took is noted.
    pub fn prepared_to_be_noted<'a>(
        &'a self,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<Prepared>> {
        Box::pin(self.prepared_to_be_noted_unboxed(plan, context))
    }

    async fn prepared_to_be_noted_unboxed(&self, plan: &QueryPlan, context: &RunContext) -> SqlResult<Prepared> {
        let start = self.clock.monotonic();
        let prepared = self.prepared_unboxed(plan, context, Purpose::Run).await?;
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

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("cores", &self.cores).finish_non_exhaustive()
    }
}
