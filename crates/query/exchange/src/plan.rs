//! From a query to stages on workers.

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

/// The workers that queries are divided among, and how.
#[derive(Debug, Clone)]
pub struct Distribution {
    pub cluster: Arc<dyn Cluster>,
    pub channels: Channels,
    pub exchange: Exchange,
    /// Each attempt to run a query has a name of its own.
    pub random: Arc<dyn Random>,
}

impl Distribution {
    /// Returns the distribution among the other workers, without a lost one.
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

/// How rows move between workers.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    pub joins: JoinExchange,
    /// Into how many partitions a task's rows are divided: what programs do not run is done by so many threads. At least two.
    pub partitions: usize,
    /// A query that reads fewer bytes is sent to one worker as a whole.
    pub small_bytes: u64,
    /// A side of a join that reads as many rows is told first which keys the other side has, where that leaves out most of them.
    pub keys_from_rows: f64,
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is run.
    Run,
    /// It is run, and its tasks tell what they did.
    Measure,
    /// It is only shown: no subquery may run for it.
    Show,
}

/// The planning of one attempt.
pub struct Planning<'a> {
    pub(super) plan: &'a QueryPlan,
    pub(super) resources: QueryResources<'a>,
    pub(super) distribution: &'a Distribution,
    purpose: Purpose,
    /// Those there were when it began.
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

    /// The same for a part of the query that runs before the rest, of which nobody is told.
    pub(super) fn before(&self) -> Self {
        let workers = Arc::clone(&self.workers);
        Self { purpose: Purpose::Run, workers, reports: Arc::default(), ..*self }
    }

    /// The query as it runs on workers, or why it does not.
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

    /// A part of the query as it runs on workers, or why it does not.
    pub(super) async fn stages_of(&self, optimized: Optimized) -> SqlResult<Result<Prepared, Reason>> {
        let operators = plan_operators(self.plan, &optimized, Division::None, self.resources.cancel).await?;
        self.distributed(optimized, operators).await
    }

    /// Operators that are not divided, as they run on workers.
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
                // Nothing of it is shared.
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

    /// The query as the only task of `home`.
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
        // Its subqueries of one value may have been the tasks of the same worker, which knows tasks by their names.
        let operators = Arc::new(DistributedExec::new(sent(operators, self.distribution.random.uuid())?));
        Ok(self.prepared(operators, &builder.build(), optimized, Spread::Worker(home)))
    }

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

    /// What operators are planned with.
    fn state(&self, optimized: &Optimized) -> SessionState {
        let Exchange { joins, partitions, .. } = self.distribution.exchange;
        let mut state = self.plan.state.as_ref().clone();
        let mut config = state.config().clone().with_target_partitions(partitions.max(2));
        config.set_extension(Arc::new(ForWorkers));
        *state.config_mut() = config;
        // Without Kiln's rules there are no estimates of theirs.
        let expected = self.resources.settings.optimizer().then(|| optimized.expected());
        joins.configured(state, expected, self.workers.len())
    }

    /// The operators cut where rows change places.
    async fn cut(&self, operators: &Arc<dyn ExecutionPlan>, state: &SessionState) -> DfResult<Cut> {
        let partitions = state.config().target_partitions();
        let owners = Owners::of(&self.workers, self.distribution.cluster.as_ref(), partitions)?;
        match self.cut_with(operators, state, owners.as_ref()).await? {
            Some(cut) => Ok(cut),
            None => {
                let cut = self.cut_with(operators, state, None).await?;
                Ok(cut.expect("no row goes to the owner of its bucket"))
            }
        }
    }

    /// The same, with rows that go to the owners of their buckets; `None` where these do not run the stage that wants them.
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
        // All inputs of a union are read by every task, each a part of them: so tasks are where their scans are.
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

    /// What the library, the workers and the connections to these are told of the query.
    fn configure(&self, config: &mut SessionConfig) -> DfResult<()> {
        let (settings, priority) = (self.resources.settings, self.resources.share.priority());
        let own = self.plan.state.config();
        let facts = QueryFacts::of(self.run, priority, settings.query_memory(), settings.engine(), own);
        config.set_distributed_worker_resolver(Known(Arc::clone(&self.workers)));
        config.set_distributed_channel_resolver(self.distribution.channels.clone());
        config.set_distributed_user_codec(Codec::writing());
        config.set_distributed_passthrough_headers(facts.headers()?.into_headers())?;
        config.set_distributed_metrics_collection(self.purpose == Purpose::Measure)?;
        // Rows that leave no machine cost more to compress than to send.
        let is_here = self.workers.iter().all(is_local);
        config.set_distributed_compression((!is_here).then_some(CompressionType::LZ4_FRAME))?;
        config.set_extension(Arc::clone(&self.reports));
        if self.purpose == Purpose::Measure {
            config.set_extension(Arc::new(Asked));
        }
        Ok(())
    }
}

/// Has a worker count the query as long as its session lives, which is until its last row is made.
struct Counted(#[expect(dead_code, reason = "it is kept, not looked at")] Box<dyn Send + Sync>);

/// What the library made of a plan.
enum Cut {
    Stages {
        operators: Arc<dyn ExecutionPlan>,
        state: Box<SessionState>,
    },
    /// Nothing of it is done by several tasks, or can be.
    OneTask,
}

/// Operators whose scans have as many partitions as a worker has threads.
fn with_scans_for_workers(operators: &Arc<dyn ExecutionPlan>, threads: usize) -> DfResult<Arc<dyn ExecutionPlan>> {
    let divided = Arc::clone(operators).transform_up(|operator| {
        Ok(match operator.downcast_ref::<ShardScanExec>() {
            Some(scan) => Transformed::yes(Arc::new(scan.for_workers(threads)) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(operator),
        })
    });
    divided.data()
}

/// Whether a worker is on this machine.
fn is_local(worker: &Url) -> bool {
    match worker.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        _ => false,
    }
}

/// The error of a query whose worker has gone before it was sent there.
fn gone(worker: &Url) -> DataFusionError {
    to_datafusion(lost(worker, "it has gone"))
}

/// A plan of operators in the place of a planner: the library goes on from what another has made.
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

/// The workers of one run.
struct Known(Arc<[Url]>);

impl WorkerResolver for Known {
    fn get_urls(&self) -> DfResult<Vec<Url>> {
        Ok(self.0.to_vec())
    }
}
