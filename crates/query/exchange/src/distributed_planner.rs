//! Plans a query as stages on workers.

use std::sync::Arc;

use arrow::ipc::CompressionType;
use binder::{PlanningPhase, QueryPlan, Step};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result as DfResult};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    DistributedExec, DistributedExt, RouteTasksEvent, RouteTasksEventResponse, SessionStateBuilderExt, WorkerResolver,
};
use functions::error::{from_datafusion, to_datafusion};
use futures::future::{BoxFuture, ready};
use operators::{Threading, partition_operators, plan_operators};
use optimizer::OptimizedPlan;
use optimizer::common_subplans;
use scan::{PlanForWorkers, ShardScanExec};
use tracing::Instrument;
use types::{Random, SqlError, SqlResult};
use url::{Host, Url};
use uuid::Uuid;

use crate::avoid_exchanges::avoid_exchanges;
use crate::bucket_owners::{BucketOwners, all_owners_have_tasks};
use crate::check_distributable::{LocalQuery, LocalReason, check_distributable, scanned_bytes};
use crate::codec::Codec;
use crate::error_transport::{lost_worker, worker_lost_error};
use crate::join_distribution::JoinDistribution;
use crate::local_plan::is_planned_undivided;
use crate::prepared_query::{DistributedRun, PreparedQuery};
use crate::query_resources::QueryResources;
use crate::root_stage::RootStageExec;
use crate::run_location::RunLocation;
use crate::scan_tasks;
use crate::single_task::{preferred_worker, single_task_exchange};
use crate::stage_preparation::{are_windows_ordered, prepare_for_cut};
use crate::task_assignment::{Cluster, WithoutWorker};
use crate::task_reports::{ReportsRequested, TaskReports};
use crate::task_request_header::TaskRequestHeader;
use crate::worker_connections::Channels;

/// Workers that queries are distributed to, and the services and settings used for that.
#[derive(Debug, Clone)]
pub struct DistributionContext {
    pub cluster: Arc<dyn Cluster>,
    pub channels: Channels,
    pub exchange: ExchangeConfig,
    /// Source of run ids: each attempt to run a query has its own.
    pub random: Arc<dyn Random>,
}

impl DistributionContext {
    /// Returns the same distribution without a worker that was lost.
    #[must_use]
    pub fn without(&self, lost: Url) -> Self {
        Self { cluster: Arc::new(WithoutWorker::new(Arc::clone(&self.cluster), lost)), ..self.clone() }
    }

    /// Reports a lost worker to the cluster, if the error names one, so that other queries avoid it.
    pub fn report_lost_worker(&self, error: &SqlError) {
        if let Some(worker) = lost_worker(error) {
            self.cluster.report_unreachable(&worker);
        }
    }
}

/// Settings of exchanges between workers.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeConfig {
    pub joins: JoinDistribution,
    /// Number of partitions per task, which is the parallelism of operators that are not compiled; at least two.
    pub partitions: usize,
    /// Bytes below which a query is sent to one worker as a single task.
    pub single_task_bytes_max: u64,
    /// Rows from which a join side is worth filtering by the other side's keys, computed first (semi-join reduction).
    pub semi_join_rows_min: f64,
}

/// Purpose of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The query is run.
    Run,
    /// The query is run and its tasks report metrics (EXPLAIN ANALYZE).
    Analyze,
    /// The plan is only shown (EXPLAIN): no subquery is run for it.
    Explain,
}

/// Planner of one attempt to run a query on workers.
pub struct DistributedPlanner<'a> {
    pub(super) plan: &'a QueryPlan,
    pub(super) resources: QueryResources<'a>,
    pub(super) distribution: &'a DistributionContext,
    purpose: Purpose,
    /// Workers that were available when planning began.
    pub(super) workers: Arc<[Url]>,
    run_id: Uuid,
    reports: Arc<TaskReports>,
}

impl<'a> DistributedPlanner<'a> {
    pub fn new(
        plan: &'a QueryPlan,
        resources: QueryResources<'a>,
        distribution: &'a DistributionContext,
        purpose: Purpose,
    ) -> Self {
        let workers = distribution.cluster.workers().into();
        let run_id = distribution.random.uuid();
        Self { plan, resources, distribution, purpose, workers, run_id, reports: Arc::default() }
    }

    /// Returns a planner for a part of the query that runs first, such as a scalar subquery; its tasks report no
    /// metrics.
    pub(super) fn for_subplan(&self) -> Self {
        let workers = Arc::clone(&self.workers);
        Self { purpose: Purpose::Run, workers, reports: Arc::default(), ..*self }
    }

    /// Plans the query on workers, or returns why it has to run in the instance.
    pub async fn plan_stages(&self) -> SqlResult<Result<PreparedQuery, LocalQuery>> {
        if self.workers.is_empty() {
            return Ok(Err(LocalReason::NoWorkers.into()));
        }
        if !self.plan.locks.is_empty() {
            return Ok(Err(LocalReason::Locks.into()));
        }
        let stop = self.resources.cancel;
        let Some(optimized) = self.plan.optimized_without_sharing(stop).await? else {
            return Ok(Err(LocalReason::SharedRows.into()));
        };
        let operators = plan_operators(self.plan, &optimized, Threading::Single, stop).await?;
        match self.distribute(optimized.clone(), Arc::clone(&operators)).await? {
            Ok(ready) => Ok(Ok(ready)),
            Err(reason) => {
                // The instance computes once what its parts share.
                let is_planned_alike = is_planned_undivided(&optimized, self.resources.settings)?
                    && !common_subplans::reads_a_table_twice(&self.plan.plan).map_err(from_datafusion)?;
                Ok(Err(LocalQuery { reason, plan: is_planned_alike.then_some((optimized, operators)) }))
            }
        }
    }

    /// Plans a part of the query on workers, or returns why it has to run in the instance.
    pub(super) async fn plan_subquery_stages(
        &self,
        optimized: OptimizedPlan,
    ) -> SqlResult<Result<PreparedQuery, LocalReason>> {
        let operators = plan_operators(self.plan, &optimized, Threading::Single, self.resources.cancel).await?;
        self.distribute(optimized, operators).await
    }

    /// Plans undivided operators on workers: scalar subqueries and join keys are computed first, then the plan is cut
    /// into stages or, where little is read, becomes a single task.
    pub(super) async fn distribute(
        &self,
        mut optimized: OptimizedPlan,
        mut operators: Arc<dyn ExecutionPlan>,
    ) -> SqlResult<Result<PreparedQuery, LocalReason>> {
        let (plan, stop) = (self.plan, self.resources.cancel);
        if let Err(reason) = check_distributable(&operators) {
            return Ok(Err(reason));
        }
        let is_whole =
            self.workers.len() == 1 || scanned_bytes(&operators) < self.distribution.exchange.single_task_bytes_max;
        let cluster = self.distribution.cluster.as_ref();
        let Some(home) = preferred_worker(&operators, &cluster.with_free_capacity(&self.workers), cluster) else {
            return Ok(Err(LocalReason::NothingStored));
        };
        let subqueries = optimized.scalar_subqueries().map_err(from_datafusion)?;
        if !subqueries.is_empty() {
            if self.purpose == Purpose::Explain {
                return Ok(Err(LocalReason::SubqueriesFirst));
            }
            let mut values = Vec::with_capacity(subqueries.len());
            for subquery in subqueries {
                let value = Box::pin(self.evaluate_scalar_subquery(subquery.optimized()))
                    .instrument(Step::EvaluateSubplans.span())
                    .await?;
                values.push((subquery, value));
            }
            optimized = optimized.with_values(&values).map_err(from_datafusion)?;
            operators = plan_operators(plan, &optimized, Threading::Single, stop).await?;
        }
        if !is_whole {
            if self.purpose != Purpose::Explain
                && self.resources.settings.optimizer()
                && let Some(with_keys) = self.add_semi_join_keys(&optimized).await?
            {
                optimized = with_keys;
                operators = plan_operators(plan, &optimized, Threading::Single, stop).await?;
            }
            let state = self.planning_session(&optimized);
            let plan = QueryPlan { state: Arc::new(state.clone()), ..plan.clone() };
            let divided = if self.resources.settings.optimizer() {
                let threads = state.config().target_partitions();
                let scans_divided = partition_scans_for_workers(&operators, threads).map_err(from_datafusion)?;
                // No part of the plan is shared between readers, so all of it may be partitioned.
                let begun = plan.planning_timings.start();
                let partitioned = partition_operators(&plan, scans_divided, &|_| true, stop);
                plan.planning_timings.end(PlanningPhase::PhysicalPlanning, begun);
                partitioned?
            } else {
                plan_operators(&plan, &optimized, Threading::Multiple, stop).await?
            };
            if let Err(reason) = check_distributable(&divided) {
                return Ok(Err(reason));
            }
            match self
                .cut_into_stages(&divided, &state)
                .instrument(Step::Distribute.span())
                .await
                .map_err(from_datafusion)?
            {
                CutPlan::Stages { operators, state } => {
                    let spread = RunLocation::Workers(self.workers.len());
                    return Ok(Ok(self.prepare(operators, &state, optimized, spread)));
                }
                CutPlan::SingleTask => {}
            }
        }
        self.plan_single_task(operators, optimized, home).map(Ok).map_err(from_datafusion)
    }

    /// Plans the query as the only task of the worker `home`.
    fn plan_single_task(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        optimized: OptimizedPlan,
        home: Url,
    ) -> DfResult<PreparedQuery> {
        let builder = SessionStateBuilder::new_from_existing(self.plan.state.as_ref().clone());
        let mut builder = builder.with_distributed_planner();
        let config = builder.config().get_or_insert_default();
        self.configure(config)?;
        let (cluster, to) = (Arc::clone(&self.distribution.cluster), home.clone());
        config.set_distributed_route_tasks_handler(move |_: RouteTasksEvent<'_>| {
            let is_there = cluster.workers().contains(&to);
            let routed =
                if is_there { Ok(RouteTasksEventResponse::new(vec![to.clone()])) } else { Err(worker_gone_error(&to)) };
            Some(routed)
        });
        if self.purpose != Purpose::Explain
            && let Some(counted) = self.distribution.cluster.count_single_task(&home)
        {
            config.set_extension(Arc::new(TaskCountGuard(counted)));
        }
        // Scalar subqueries may have been tasks of the same worker, which identifies tasks by name.
        let operators =
            Arc::new(DistributedExec::new(single_task_exchange(operators, self.distribution.random.uuid())?));
        Ok(self.prepare(operators, &builder.build(), optimized, RunLocation::SingleWorker(home)))
    }

    /// Returns the operators with everything that is needed to run them.
    pub(super) fn prepare(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        state: &SessionState,
        optimized: OptimizedPlan,
        spread: RunLocation,
    ) -> PreparedQuery {
        let task = self.resources.task(state);
        let place = DistributedRun { location: spread, reports: Arc::clone(&self.reports) };
        PreparedQuery { operators, optimized: Arc::new(optimized), task, distributed: Some(place) }
    }

    /// Returns the session state for planning distributed operators.
    fn planning_session(&self, optimized: &OptimizedPlan) -> SessionState {
        let ExchangeConfig { joins, partitions, .. } = self.distribution.exchange;
        let mut state = self.plan.state.as_ref().clone();
        let mut config = state.config().clone().with_target_partitions(partitions.max(2));
        config.set_extension(Arc::new(PlanForWorkers));
        *state.config_mut() = config;
        // Kiln's estimates exist only where its optimizer rules ran.
        let expected = self.resources.settings.optimizer().then(|| optimized.estimate_rows());
        joins.configure(state, expected, self.workers.len())
    }

    /// Cuts operators into stages, with rows sent to the owners of their buckets where that works out.
    async fn cut_into_stages(&self, operators: &Arc<dyn ExecutionPlan>, state: &SessionState) -> DfResult<CutPlan> {
        let partitions = state.config().target_partitions();
        let owners = BucketOwners::try_new(&self.workers, self.distribution.cluster.as_ref(), partitions)?;
        match self.try_cut_into_stages(operators, state, owners.as_ref()).await? {
            Some(cut) => Ok(cut),
            None => {
                let cut = self.try_cut_into_stages(operators, state, None).await?;
                Ok(cut.expect("without owners no exchange needs a task on every worker"))
            }
        }
    }

    /// Cuts operators into stages; with `owners`, returns `None` if a stage that receives rows by bucket owner does not
    /// get a task on every worker.
    async fn try_cut_into_stages(
        &self,
        operators: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        owners: Option<&BucketOwners>,
    ) -> DfResult<Option<CutPlan>> {
        let operators = prepare_for_cut(avoid_exchanges(operators, owners)?)?;
        let mut builder = SessionStateBuilder::new_from_existing(state.clone())
            .with_query_planner(Arc::new(FixedPlanner(operators)))
            .with_distributed_planner();
        let config = builder.config().get_or_insert_default();
        self.configure(config)?;
        scan_tasks::register_handlers(config, &self.distribution.cluster, &self.workers);
        config.set_distributed_broadcast_joins(true)?;
        // Every task reads a part of each input of a union, so tasks are placed where its scans are.
        config.set_distributed_children_isolator_unions(false)?;
        let state = builder.build();
        let nothing = EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) };
        let nothing = LogicalPlan::EmptyRelation(nothing);
        let cut = state.query_planner().create_physical_plan(&nothing, &state).await?;
        if !all_owners_have_tasks(&cut, self.workers.len()) {
            return Ok(None);
        }
        if !cut.is::<DistributedExec>() || !are_windows_ordered(&cut) {
            return Ok(Some(CutPlan::SingleTask));
        }
        let engine = self.resources.settings.engine();
        let head = |input: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
            Arc::new(RootStageExec::new(Arc::clone(input), engine))
        };
        let heads = cut.children().into_iter().map(head).collect();
        let operators = replace_children_if_necessary(cut, heads)?;
        Ok(Some(CutPlan::Stages { operators, state: Box::new(state) }))
    }

    /// Configures the library for this query: workers, connections, codec, headers, metrics and compression.
    fn configure(&self, config: &mut SessionConfig) -> DfResult<()> {
        let (settings, priority) = (self.resources.settings, self.resources.share.priority());
        let own = self.plan.state.config();
        let header = TaskRequestHeader::new(self.run_id, priority, settings.query_memory(), settings.engine(), own);
        config.set_distributed_worker_resolver(FixedWorkers(Arc::clone(&self.workers)));
        config.set_distributed_channel_resolver(self.distribution.channels.clone());
        config.set_distributed_user_codec(Codec::encoder());
        config.set_distributed_passthrough_headers(header.headers()?.into_headers())?;
        config.set_distributed_metrics_collection(self.purpose == Purpose::Analyze)?;
        // On one machine, compressing rows costs more than sending them.
        let is_here = self.workers.iter().all(is_local);
        config.set_distributed_compression((!is_here).then_some(CompressionType::LZ4_FRAME))?;
        config.set_extension(Arc::clone(&self.reports));
        if self.purpose == Purpose::Analyze {
            config.set_extension(Arc::new(ReportsRequested));
        }
        Ok(())
    }
}

/// Keeps the query counted on its worker for as long as its session lives, which is until its last row is produced.
struct TaskCountGuard(#[expect(dead_code, reason = "it is kept, not looked at")] Box<dyn Send + Sync>);

/// Result of cutting a plan.
enum CutPlan {
    Stages {
        operators: Arc<dyn ExecutionPlan>,
        state: Box<SessionState>,
    },
    /// No part of the plan can be, or needs to be, run by several tasks.
    SingleTask,
}

/// Gives scans as many partitions as a worker has threads.
fn partition_scans_for_workers(operators: &Arc<dyn ExecutionPlan>, threads: usize) -> DfResult<Arc<dyn ExecutionPlan>> {
    let divided = Arc::clone(operators).transform_up(|operator| {
        Ok(match operator.downcast_ref::<ShardScanExec>() {
            Some(scan) => Transformed::yes(Arc::new(scan.with_worker_partitions(threads)) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(operator),
        })
    });
    divided.data()
}

/// Returns whether a worker is on this machine.
fn is_local(worker: &Url) -> bool {
    match worker.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        _ => false,
    }
}

/// Returns the error of a query whose worker disappeared before the query was sent.
fn worker_gone_error(worker: &Url) -> DataFusionError {
    to_datafusion(worker_lost_error(worker, "it is not in the cluster any more"))
}

/// Query planner that returns a given physical plan, so that the library continues from it.
#[derive(Debug)]
struct FixedPlanner(Arc<dyn ExecutionPlan>);

impl QueryPlanner for FixedPlanner {
    // Without `async`: see `plan::StreamTable`.
    fn create_physical_plan<'a, 'b, 'c, 'd>(
        &'a self,
        _: &'b LogicalPlan,
        _: &'c dyn Session,
    ) -> BoxFuture<'d, DfResult<Arc<dyn ExecutionPlan>>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        Box::pin(ready(Ok(Arc::clone(&self.0))))
    }
}

/// Resolver of a fixed list of workers: those of one run.
struct FixedWorkers(Arc<[Url]>);

impl WorkerResolver for FixedWorkers {
    fn get_urls(&self) -> DfResult<Vec<Url>> {
        Ok(self.0.to_vec())
    }
}
