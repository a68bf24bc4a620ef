//! Execution of plans with the query threads, memory and spill space of a process.

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

/// Service that plans queries and runs their operators on the query threads.
pub struct Executor {
    /// Query threads for runs without a worker.
    threads: Arc<Threads>,
    /// Planning threads, which parse, bind and optimize.
    planning: Arc<PlanningThreads>,
    runtime: Arc<RuntimeEnv>,
    clock: Arc<dyn Clock>,
    parts: usize,
    cores: usize,
    memory_bytes: usize,
    spill_bytes_max: u64,
}

impl Executor {
    /// Starts the threads and clears the spill folder.
    ///
    /// # Errors
    /// `58030` if the spill folder cannot be used or threads cannot be started.
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

    /// Returns the planning threads.
    #[must_use]
    pub fn planning(&self) -> &Arc<PlanningThreads> {
        &self.planning
    }

    /// Returns the query threads.
    #[must_use]
    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// Returns the number of cores that the query threads use.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Returns the memory limit of all running operators together, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Returns the number of partitions of a plan that run in parallel by default.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the memory pool and the spill space, which all plans share.
    #[must_use]
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime)
    }

    /// Limits spilling so that the reserve on the spill folder's disk stays free, as long as the server runs; operators
    /// that need more fail with `53100`.
    pub fn keep_spill_room<'a>(&'a self, reserve: &'a Reserve, health: &'a Health) -> BoxFuture<'a, ()> {
        let most = || self.spill_bytes_max;
        Box::pin(keep_spill_room(&self.runtime.disk_manager, reserve, most, &self.clock, health))
    }
}

impl Executor {
    /// Plans and starts a query; its rows are computed as they are read. A query on workers returns only once its first
    /// batch has arrived: until then, the statement can be retried.
    ///
    /// # Errors
    /// Errors of planning (constant folding, scans); `57014` if cancelled.
    pub fn query<'a>(
        self: &'a Arc<Self>,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<RowStream>> {
        Box::pin(async move { self.query_placed_unboxed(plan, context).await.map(|(rows, _)| rows) })
    }

    /// Plans and starts a query like [`Executor::query`], and returns where it runs, if its statement may use remote
    /// workers.
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

    /// Runs a query and returns all of its rows.
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

    /// Starts operators and returns their rows, all partitions merged into one stream.
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

    /// Plans a query for `purpose`. Large plans are made on the planning threads, so that they occupy no query thread.
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
        // Shared by planning for workers and planning for this process: the plan is optimized once.
        let (own, about) = (plan.clone().optimized_once(), context.clone());
        let preparing = async move { prepare(&own, &about, purpose).await }.instrument(Span::current());
        if plan.is_small() {
            return self.run(context, preparing).await;
        }
        // Subqueries that run during planning spawn their tasks on the query threads.
        let runtime = self.threads_of(context).handle();
        let planning = self.planning().run(move || runtime.block_on(preparing));
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(canceled()),
            prepared = planning => prepared.map_err(|error| context.memory.explained(error)),
        }
    }

    /// Replaces LIMIT and OFFSET counts that are subqueries by their values. The subqueries run before the query, in
    /// this process, within the query's memory. For EXPLAIN without ANALYZE none runs.
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

    /// Plans a query like [`Executor::prepared`] to be run, and records plan and planning time in the context.
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

    /// Runs `task` on the query threads; dropping the future or cancelling the run stops it.
    ///
    /// # Errors
    /// Errors of the task; `57014` if cancelled.
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
