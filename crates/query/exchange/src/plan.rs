//! Plans a query as stages on workers.

use std::sync::Arc;

use arrow::ipc::CompressionType;
use binder::{Phase, QueryPlan, Step};
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
use operators::{Division, partition_operators, plan_operators};
use optimizer::Optimized;
use optimizer::shared;
use scan::{ForWorkers, ShardScanExec};
use tracing::Instrument;
use types::{Random, SqlError, SqlResult};
use url::{Host, Url};
use uuid::Uuid;

use crate::assign::{Cluster, Without};
use crate::channel::Channels;
use crate::codec::Codec;
use crate::compiled::is_compiled;
use crate::facts::QueryFacts;
use crate::failure::{lost, lost_worker};
use crate::head::HeadExec;
use crate::in_place::in_place;
use crate::joins::JoinExchange;
use crate::leaf;
use crate::owners::{Owners, arrive};
use crate::prepared::{Place, Prepared};
use crate::reason::{Reason, Undistributed, can_leave, scanned_bytes};
use crate::reports::{Asked, Reports};
use crate::resources::QueryResources;
use crate::shape::{are_windows_ordered, to_be_cut};
use crate::spread::Spread;
use crate::whole::{home, sent};

/// Workers that queries are distributed to, and the services and settings used for that.
#[derive(Debug, Clone)]
pub struct Distribution {
    pub cluster: Arc<dyn Cluster>,
    pub channels: Channels,
    pub exchange: Exchange,
    /// Source of run ids: each attempt to run a query has its own.
    pub random: Arc<dyn Random>,
}

impl Distribution {
    /// Returns the same distribution without a worker that was lost.
    #[must_use]
    pub fn without(&self, lost: Url) -> Self {
        Self { cluster: Arc::new(Without::new(Arc::clone(&self.cluster), lost)), ..self.clone() }
    }

    /// Reports a lost worker to the cluster, if the error names one, so that other queries avoid it.
    pub fn report_lost_worker(&self, error: &SqlError) {
        if let Some(worker) = lost_worker(error) {
            self.cluster.unreached(&worker);
        }
    }
}

/// Settings of exchanges between workers.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    pub joins: JoinExchange,
    /// Number of partitions per task, which is the parallelism of operators that are not compiled; at least two.
    pub partitions: usize,
    /// Bytes below which a query is sent to one worker as a single task.
    pub small_bytes: u64,
    /// Rows from which a join side is worth filtering by the other side's keys, computed first (semi-join reduction).
    pub keys_from_rows: f64,
}

/// Purpose of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The query is run.
    Run,
    /// The query is run and its tasks report metrics (EXPLAIN ANALYZE).
    Measure,
    /// The plan is only shown (EXPLAIN): no subquery is run for it.
    Show,
}

/// Planner of one attempt to run a query on workers.
pub struct Planning<'a> {
    pub(super) plan: &'a QueryPlan,
    pub(super) resources: QueryResources<'a>,
    pub(super) distribution: &'a Distribution,
    purpose: Purpose,
    /// Workers that were available when planning began.
    pub(super) workers: Arc<[Url]>,
    run: Uuid,
    reports: Arc<Reports>,
}

impl<'a> Planning<'a> {
    pub fn new(
        plan: &'a QueryPlan,
        resources: QueryResources<'a>,
        distribution: &'a Distribution,
        purpose: Purpose,
    ) -> Self {
        let workers = distribution.cluster.workers().into();
        let run = distribution.random.uuid();
        Self { plan, resources, distribution, purpose, workers, run, reports: Arc::default() }
    }

    /// Returns a planner for a part of the query that runs first, such as a scalar subquery; its tasks report no
    /// metrics.
    pub(super) fn before(&self) -> Self {
        let workers = Arc::clone(&self.workers);
        Self { purpose: Purpose::Run, workers, reports: Arc::default(), ..*self }
    }

    /// Plans the query on workers, or returns why it has to run in the instance.
    pub async fn stages(&self) -> SqlResult<Result<Prepared, Undistributed>> {
        if self.workers.is_empty() {
            return Ok(Err(Reason::NoWorkers.into()));
        }
        if !self.plan.locks.is_empty() {
            return Ok(Err(Reason::Locks.into()));
        }
        let stop = self.resources.cancel;
        let Some(optimized) = self.plan.optimized_apart(stop).await? else { return Ok(Err(Reason::Shares.into())) };
        let operators = plan_operators(self.plan, &optimized, Division::None, stop).await?;
        match self.distributed(optimized.clone(), Arc::clone(&operators)).await? {
            Ok(ready) => Ok(Ok(ready)),
            Err(reason) => {
                // The instance computes once what its parts share.
                let is_planned_alike = is_compiled(&optimized, self.resources.settings)?
                    && !shared::reads_a_table_twice(&self.plan.plan).map_err(from_datafusion)?;
                Ok(Err(Undistributed { reason, planned: is_planned_alike.then_some((optimized, operators)) }))
            }
        }
    }

    /// Plans a part of the query on workers, or returns why it has to run in the instance.
    pub(super) async fn stages_of(&self, optimized: Optimized) -> SqlResult<Result<Prepared, Reason>> {
        let operators = plan_operators(self.plan, &optimized, Division::None, self.resources.cancel).await?;
        self.distributed(optimized, operators).await
    }

    /// Plans undivided operators on workers: scalar subqueries and join keys are computed first, then the plan is cut
    /// into stages or, where little is read, becomes a single task.
    pub(super) async fn distributed(
        &self,
        mut optimized: Optimized,
        mut operators: Arc<dyn ExecutionPlan>,
    ) -> SqlResult<Result<Prepared, Reason>> {
        let (plan, stop) = (self.plan, self.resources.cancel);
        if let Err(reason) = can_leave(&operators) {
            return Ok(Err(reason));
        }
        let is_whole = self.workers.len() == 1 || scanned_bytes(&operators) < self.distribution.exchange.small_bytes;
        let cluster = self.distribution.cluster.as_ref();
        let Some(home) = home(&operators, &cluster.with_room(&self.workers), cluster) else {
            return Ok(Err(Reason::NothingStored));
        };
        let subqueries = optimized.scalar_subqueries().map_err(from_datafusion)?;
        if !subqueries.is_empty() {
            if self.purpose == Purpose::Show {
                return Ok(Err(Reason::SubqueriesFirst));
            }
            let mut values = Vec::with_capacity(subqueries.len());
            for subquery in subqueries {
                let value =
                    Box::pin(self.value(subquery.optimized())).instrument(Step::EvaluateSubplans.span()).await?;
                values.push((subquery, value));
            }
            optimized = optimized.with_values(&values).map_err(from_datafusion)?;
            operators = plan_operators(plan, &optimized, Division::None, stop).await?;
        }
        if !is_whole {
            if self.purpose != Purpose::Show
                && self.resources.settings.optimizer()
                && let Some(with_keys) = self.with_keys(&optimized).await?
            {
                optimized = with_keys;
                operators = plan_operators(plan, &optimized, Division::None, stop).await?;
            }
            let state = self.state(&optimized);
            let plan = QueryPlan { state: Arc::new(state.clone()), ..plan.clone() };
            let divided = if self.resources.settings.optimizer() {
                let threads = state.config().target_partitions();
                let scans_divided = with_scans_for_workers(&operators, threads).map_err(from_datafusion)?;
                // No part of the plan is shared between readers, so all of it may be partitioned.
                let begun = plan.phases.begin();
                let partitioned = partition_operators(&plan, scans_divided, &|_| true, stop);
                plan.phases.end(Phase::Operators, begun);
                partitioned?
            } else {
                plan_operators(&plan, &optimized, Division::Threads, stop).await?
            };
            if let Err(reason) = can_leave(&divided) {
                return Ok(Err(reason));
            }
            match self.cut(&divided, &state).instrument(Step::Distribute.span()).await.map_err(from_datafusion)? {
                Cut::Stages { operators, state } => {
                    let spread = Spread::Workers(self.workers.len());
                    return Ok(Ok(self.prepared(operators, &state, optimized, spread)));
                }
                Cut::OneTask => {}
            }
        }
        self.whole(operators, optimized, home).map(Ok).map_err(from_datafusion)
    }

    /// Plans the query as the only task of the worker `home`.
    fn whole(&self, operators: Arc<dyn ExecutionPlan>, optimized: Optimized, home: Url) -> DfResult<Prepared> {
        let builder = SessionStateBuilder::new_from_existing(self.plan.state.as_ref().clone());
        let mut builder = builder.with_distributed_planner();
        let config = builder.config().get_or_insert_default();
        self.configure(config)?;
        let (cluster, to) = (Arc::clone(&self.distribution.cluster), home.clone());
        config.set_distributed_route_tasks_handler(move |_: RouteTasksEvent<'_>| {
            let is_there = cluster.workers().contains(&to);
            let routed = if is_there { Ok(RouteTasksEventResponse::new(vec![to.clone()])) } else { Err(gone(&to)) };
            Some(routed)
        });
        if self.purpose != Purpose::Show
            && let Some(counted) = self.distribution.cluster.count(&home)
        {
            config.set_extension(Arc::new(Counted(counted)));
        }
        // Scalar subqueries may have been tasks of the same worker, which identifies tasks by name.
        let operators = Arc::new(DistributedExec::new(sent(operators, self.distribution.random.uuid())?));
        Ok(self.prepared(operators, &builder.build(), optimized, Spread::Worker(home)))
    }

    /// Returns the operators with everything that is needed to run them.
    pub(super) fn prepared(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        state: &SessionState,
        optimized: Optimized,
        spread: Spread,
    ) -> Prepared {
        let task = self.resources.task(state);
        let place = Place { spread, reports: Arc::clone(&self.reports) };
        Prepared { operators, optimized: Arc::new(optimized), task, place: Some(place) }
    }

    /// Returns the session state for planning distributed operators.
    fn state(&self, optimized: &Optimized) -> SessionState {
        let Exchange { joins, partitions, .. } = self.distribution.exchange;
        let mut state = self.plan.state.as_ref().clone();
        let mut config = state.config().clone().with_target_partitions(partitions.max(2));
        config.set_extension(Arc::new(ForWorkers));
        *state.config_mut() = config;
        // Kiln's estimates exist only where its optimizer rules ran.
        let expected = self.resources.settings.optimizer().then(|| optimized.expected());
        joins.configured(state, expected, self.workers.len())
    }

    /// Cuts operators into stages, with rows sent to the owners of their buckets where that works out.
    async fn cut(&self, operators: &Arc<dyn ExecutionPlan>, state: &SessionState) -> DfResult<Cut> {
        let partitions = state.config().target_partitions();
        let owners = Owners::of(&self.workers, self.distribution.cluster.as_ref(), partitions)?;
        match self.cut_with(operators, state, owners.as_ref()).await? {
            Some(cut) => Ok(cut),
            None => {
                let cut = self.cut_with(operators, state, None).await?;
                Ok(cut.expect("without owners no exchange needs a task on every worker"))
            }
        }
    }

    /// Cuts operators into stages; with `owners`, returns `None` if a stage that receives rows by bucket owner does not
    /// get a task on every worker.
    async fn cut_with(
        &self,
        operators: &Arc<dyn ExecutionPlan>,
        state: &SessionState,
        owners: Option<&Owners>,
    ) -> DfResult<Option<Cut>> {
        let operators = to_be_cut(in_place(operators, owners)?)?;
        let mut builder = SessionStateBuilder::new_from_existing(state.clone())
            .with_query_planner(Arc::new(Given(operators)))
            .with_distributed_planner();
        let config = builder.config().get_or_insert_default();
        self.configure(config)?;
        leaf::register(config, &self.distribution.cluster, &self.workers);
        config.set_distributed_broadcast_joins(true)?;
        // Every task reads a part of each input of a union, so tasks are placed where its scans are.
        config.set_distributed_children_isolator_unions(false)?;
        let state = builder.build();
        let nothing = EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) };
        let nothing = LogicalPlan::EmptyRelation(nothing);
        let cut = state.query_planner().create_physical_plan(&nothing, &state).await?;
        if !arrive(&cut, self.workers.len()) {
            return Ok(None);
        }
        if !cut.is::<DistributedExec>() || !are_windows_ordered(&cut) {
            return Ok(Some(Cut::OneTask));
        }
        let engine = self.resources.settings.engine();
        let head = |input: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
            Arc::new(HeadExec::new(Arc::clone(input), engine))
        };
        let heads = cut.children().into_iter().map(head).collect();
        let operators = replace_children_if_necessary(cut, heads)?;
        Ok(Some(Cut::Stages { operators, state: Box::new(state) }))
    }

    /// Configures the library for this query: workers, connections, codec, headers, metrics and compression.
    fn configure(&self, config: &mut SessionConfig) -> DfResult<()> {
        let (settings, priority) = (self.resources.settings, self.resources.share.priority());
        let own = self.plan.state.config();
        let facts = QueryFacts::of(self.run, priority, settings.query_memory(), settings.engine(), own);
        config.set_distributed_worker_resolver(Known(Arc::clone(&self.workers)));
        config.set_distributed_channel_resolver(self.distribution.channels.clone());
        config.set_distributed_user_codec(Codec::writing());
        config.set_distributed_passthrough_headers(facts.headers()?.into_headers())?;
        config.set_distributed_metrics_collection(self.purpose == Purpose::Measure)?;
        // On one machine, compressing rows costs more than sending them.
        let is_here = self.workers.iter().all(is_local);
        config.set_distributed_compression((!is_here).then_some(CompressionType::LZ4_FRAME))?;
        config.set_extension(Arc::clone(&self.reports));
        if self.purpose == Purpose::Measure {
            config.set_extension(Arc::new(Asked));
        }
        Ok(())
    }
}

/// Keeps the query counted on its worker for as long as its session lives, which is until its last row is produced.
struct Counted(#[expect(dead_code, reason = "it is kept, not looked at")] Box<dyn Send + Sync>);

/// Result of cutting a plan.
enum Cut {
    Stages {
        operators: Arc<dyn ExecutionPlan>,
        state: Box<SessionState>,
    },
    /// No part of the plan can be, or needs to be, run by several tasks.
    OneTask,
}

/// Gives scans as many partitions as a worker has threads.
fn with_scans_for_workers(operators: &Arc<dyn ExecutionPlan>, threads: usize) -> DfResult<Arc<dyn ExecutionPlan>> {
    let divided = Arc::clone(operators).transform_up(|operator| {
        Ok(match operator.downcast_ref::<ShardScanExec>() {
            Some(scan) => Transformed::yes(Arc::new(scan.for_workers(threads)) as Arc<dyn ExecutionPlan>),
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
fn gone(worker: &Url) -> DataFusionError {
    to_datafusion(lost(worker, "it is not in the cluster any more"))
}

/// Query planner that returns a given physical plan, so that the library continues from it.
#[derive(Debug)]
struct Given(Arc<dyn ExecutionPlan>);

impl QueryPlanner for Given {
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
struct Known(Arc<[Url]>);

impl WorkerResolver for Known {
    fn get_urls(&self) -> DfResult<Vec<Url>> {
        Ok(self.0.to_vec())
    }
}
