//! Execution of plans with the query threads, memory and spill space of a process.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::{QueryPlan, Step, read_count};
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use exchange::{PreparedQuery, Purpose, RunLocation};
use functions::error::from_datafusion;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use scheduler::{
    PlanningThreads, QueryThreads, ResourceConfig, enforce_spill_limit, limit_large_values, operator_runtime,
    start_query_threads,
};
use tokio::sync::mpsc;
use tracing::{Instrument, Span};
use types::interrupt::canceled_error;
use types::{Clock, DiskReserve, ServiceHealth, SqlResult};

use crate::prepare_plan::prepare;
use crate::row_stream::{BATCHES_AHEAD, ResultReader, RowStream, run_operators, task_error};
use crate::run_context::RunContext;

/// Service that plans queries and runs their operators on the query threads.
pub struct Executor {
    /// Query threads for runs without a worker.
    query_threads: Arc<QueryThreads>,
    /// Planning threads, which parse, bind and optimize.
    planning_threads: Arc<PlanningThreads>,
    runtime: Arc<RuntimeEnv>,
    clock: Arc<dyn Clock>,
    default_partitions: usize,
    cores: usize,
    memory_bytes: usize,
    spill_bytes_max: u64,
}

impl Executor {
    /// Starts the threads and clears the spill folder.
    ///
    /// # Errors
    /// `58030` if the spill folder cannot be used or threads cannot be started.
    pub fn start(config: &ResourceConfig, clock: &Arc<dyn Clock>) -> SqlResult<Self> {
        limit_large_values(config.memory_bytes, config.cache_bytes + config.fragment_cache_bytes);
        Ok(Self {
            runtime: operator_runtime(config.memory_bytes, &config.spill())?,
            query_threads: Arc::new(start_query_threads(config, clock)?),
            planning_threads: Arc::new(PlanningThreads::new(config.threads, config.planning_memory_bytes(), clock)),
            clock: Arc::clone(clock),
            default_partitions: config.partitions(),
            cores: config.threads,
            memory_bytes: config.memory_bytes,
            spill_bytes_max: config.spill_bytes_max,
        })
    }

    /// Returns the planning threads.
    #[must_use]
    pub fn planning_threads(&self) -> &Arc<PlanningThreads> {
        &self.planning_threads
    }

    /// Returns the query threads.
    #[must_use]
    pub fn query_threads(&self) -> &Arc<QueryThreads> {
        &self.query_threads
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
    pub fn default_partitions(&self) -> usize {
        self.default_partitions
    }

    /// Returns the memory pool and the spill space, which all plans share.
    #[must_use]
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime)
    }

    /// Limits spilling so that the reserve on the spill folder's disk stays free, as long as the server runs; operators
    /// that need more fail with `53100`.
    pub fn maintain_spill_reserve<'a>(
        &'a self,
        reserve: &'a DiskReserve,
        health: &'a ServiceHealth,
    ) -> BoxFuture<'a, ()> {
        let most = || self.spill_bytes_max;
        Box::pin(enforce_spill_limit(&self.runtime.disk_manager, reserve, most, &self.clock, health))
    }
}

impl Executor {
    /// Plans and starts a query; its rows are computed as they are read. A query on workers returns only once its first
    /// batch has arrived: until then, the statement can be retried.
    ///
    /// # Errors
    /// Errors of planning (constant folding, scans); `57014` if cancelled.
    pub fn start_query<'a>(
        self: &'a Arc<Self>,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<RowStream>> {
        Box::pin(async move { self.start_query_unboxed(plan, context).await.map(|(rows, _)| rows) })
    }

    /// Plans and starts a query like [`Executor::start_query`], and returns where it runs, if its statement may use
    /// remote workers.
    ///
    /// # Errors
    /// As [`Executor::start_query`].
    pub fn start_query_located<'a>(
        self: &'a Arc<Self>,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<(RowStream, Option<RunLocation>)>> {
        Box::pin(self.start_query_unboxed(plan, context))
    }

    async fn start_query_unboxed(
        self: &Arc<Self>,
        plan: &QueryPlan,
        context: &RunContext,
    ) -> SqlResult<(RowStream, Option<RunLocation>)> {
        let columns = plan.columns.clone();
        let prepared = self.prepare_unboxed(plan, context, Purpose::Run).await?;
        let spread = prepared.location();
        let mut stream = self.start_stream(prepared.operators, prepared.task, context).fuse();
        if !matches!(spread, Some(RunLocation::SingleWorker(_) | RunLocation::Workers(_))) {
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
        let prepared = self.prepare_and_record_unboxed(plan, context).await?;
        let rows = datafusion::physical_plan::collect(prepared.operators, prepared.task);
        let running = async move { rows.await.map_err(from_datafusion) };
        self.run_task(context, running.instrument(Step::Run.span())).await
    }

    /// Starts operators and returns their rows, all partitions merged into one stream.
    pub fn start_stream(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        context: &RunContext,
    ) -> BoxStream<'static, SqlResult<RecordBatch>> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let producing = run_operators(operators, task, sender).instrument(Step::Run.span());
        let producer = self.query_threads_for(context).spawn_until(&context.cancel, &context.thread_share, producing);
        let (cancel, memory) = (context.cancel.clone(), Arc::clone(&context.memory));
        let reading = ResultReader { receiver, producer: Some(producer), cancel, memory, lease: context.lease.clone() };
        stream::unfold(reading, async |mut reading| Some((reading.next().await?, reading))).boxed()
    }

    /// Plans a query for `purpose`. Large plans are made on the planning threads, so that they occupy no query thread.
    pub fn prepare<'a>(
        &'a self,
        plan: &'a QueryPlan,
        context: &'a RunContext,
        purpose: Purpose,
    ) -> BoxFuture<'a, SqlResult<PreparedQuery>> {
        Box::pin(self.prepare_unboxed(plan, context, purpose))
    }

    async fn prepare_unboxed(
        &self,
        plan: &QueryPlan,
        context: &RunContext,
        purpose: Purpose,
    ) -> SqlResult<PreparedQuery> {
        let counted = match plan.has_subquery_counts() {
            true => Some(Box::pin(self.with_evaluated_counts(plan, context, purpose)).await?),
            false => None,
        };
        let plan = counted.as_ref().unwrap_or(plan);
        // Shared by planning for workers and planning for this process: the plan is optimized once.
        let (once_optimized, run_context) = (plan.clone().with_optimized_plan_cache(), context.clone());
        let preparing =
            async move { prepare(&once_optimized, &run_context, purpose).await }.instrument(Span::current());
        if plan.is_small() {
            return self.run_task(context, preparing).await;
        }
        // Subqueries that run during planning spawn their tasks on the query threads.
        let runtime = self.query_threads_for(context).runtime_handle();
        let planning = self.planning_threads().run(move || runtime.block_on(preparing));
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(canceled_error()),
            prepared = planning => prepared.map_err(|error| context.memory.add_limit_hint(error)),
        }
    }

    /// Replaces LIMIT and OFFSET counts that are subqueries by their values. The subqueries run before the query, in
    /// this process, within the query's memory. For EXPLAIN without ANALYZE none runs.
    async fn with_evaluated_counts(
        &self,
        plan: &QueryPlan,
        context: &RunContext,
        purpose: Purpose,
    ) -> SqlResult<QueryPlan> {
        if purpose == Purpose::Explain {
            return plan.with_unknown_counts().await;
        }
        let here = &context.in_this_process();
        let count = |count: QueryPlan| async move {
            let prepared = self.prepare(&count, here, Purpose::Run).await?;
            let rows = datafusion::physical_plan::collect(prepared.operators, prepared.task);
            let running = async move { rows.await.map_err(from_datafusion) };
            read_count(&self.run_task(context, running.instrument(Step::Run.span())).await?)
        };
        plan.with_evaluated_counts(count).instrument(Step::EvaluateSubplans.span()).await
    }

    /// Plans a query like [`Executor::prepare`] to be run, and records plan and planning time in the context.
    pub fn prepare_and_record<'a>(
        &'a self,
        plan: &'a QueryPlan,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<PreparedQuery>> {
        Box::pin(self.prepare_and_record_unboxed(plan, context))
    }

    async fn prepare_and_record_unboxed(&self, plan: &QueryPlan, context: &RunContext) -> SqlResult<PreparedQuery> {
        let start = self.clock.monotonic();
        let prepared = self.prepare_unboxed(plan, context, Purpose::Run).await?;
        context.first_plan.record(&prepared, self.clock.monotonic().saturating_sub(start));
        Ok(prepared)
    }

    fn query_threads_for<'a>(&'a self, context: &'a RunContext) -> &'a QueryThreads {
        context.lease.as_ref().map_or(&self.query_threads, |lease| lease.threads())
    }

    /// Runs `task` on the query threads; dropping the future or cancelling the run stops it.
    ///
    /// # Errors
    /// Errors of the task; `57014` if cancelled.
    pub async fn run_task<T: Send + 'static>(
        &self,
        context: &RunContext,
        task: impl Future<Output = SqlResult<T>> + Send + 'static,
    ) -> SqlResult<T> {
        let task = self.query_threads_for(context).spawn_until(&context.cancel, &context.thread_share, task);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(canceled_error()),
            ended = task => {
                let ended = ended.unwrap_or_else(|error| Err(task_error(error)));
                ended.map_err(|error| context.memory.add_limit_hint(error))
            }
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("cores", &self.cores).finish_non_exhaustive()
    }
}
