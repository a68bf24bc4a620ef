//! Worker process: runs the tasks that coordinators send, over the shared object storage and a cache of its own.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use compile::compile_stage;
use datafusion::common::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    BroadcastExec, DistributedExt, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerQueryContext,
    WorkerSessionBuilder,
};
use futures::Stream;
use futures::future::BoxFuture;
use objects::Objects;
use parking_lot::{Mutex, RwLock};
use plan::cancellation::make_cancellable;
use scan::{FragmentCache, ScanPlanner, block_cache};
use scheduler::{
    QueryMemory, QueryShare, QueryThreads, ResourceConfig, WorkerMemory, enforce_spill_limit, limit_large_values,
    operator_runtime, start_query_threads,
};
use shards::{BlockCache, BlockLocation, DiskQuota, HotBlock, TierStats};
use tokio_util::sync::CancellationToken;
use types::{Clock, DiskReserve, ServiceHealth, SqlResult};

use crate::bucket_owners::RouteToOwnersExec;
use crate::cache_warming::CacheWarmingCounters;
use crate::codec::Codec;
use crate::error_transport::encode_error;
use crate::open_streams::OpenStreams;
use crate::task_exec::TaskExec;
use crate::task_request_header::TaskRequestHeader;
use crate::worker_connections::{ByteStream, Channels, metadata, serve};

#[cfg(test)]
mod tests;

/// State with which a worker runs tasks. Cheap to clone.
#[derive(Clone)]
pub struct Worker {
    inner: Arc<SharedWorkerState>,
    library: datafusion_distributed::Worker,
}

struct SharedWorkerState {
    scans: Arc<ScanPlanner>,
    blocks: Arc<BlockCache>,
    fragment_cache_bytes: u64,
    /// Query threads and their number. A task ends on the threads on which it began.
    threads: RwLock<(Arc<QueryThreads>, usize)>,
    memory: Arc<WorkerMemory>,
    runtime: Arc<RuntimeEnv>,
    spill_bytes_max: AtomicU64,
    clock: Arc<dyn Clock>,
    /// Connections to other workers, whose rows tasks read.
    channels: Channels,
    /// Runs by run id; a run lives as long as one of its tasks.
    runs: Mutex<HashMap<[u8; 16], Weak<QueryRun>>>,
    cache_warming: CacheWarmingCounters,
}

/// Resource limits of a worker, which may change while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Threads that run operators.
    pub threads: usize,
    /// Memory of its operators together, in bytes.
    pub memory_bytes: usize,
    /// Memory of its column cache, in bytes. If it is zero at the start there is no cache.
    pub cache_bytes: u64,
    /// Part of the disk that its cache may use.
    pub cache_disk: DiskQuota,
    /// Maximum bytes that it spills.
    pub spill_bytes_max: u64,
}

/// State that the tasks of one query share on this worker.
#[derive(Debug)]
struct QueryRun {
    memory: QueryMemory,
    share: Arc<QueryShare>,
    /// Open streams of its tasks. The library retains finished tasks for a while; they do not count.
    active: Arc<OpenStreams>,
}

impl Worker {
    /// Starts the threads and cleans the spill folder. Tasks read shards from `objects` and rows of other tasks over
    /// `channels`.
    ///
    /// # Errors
    /// `58030` if the spill folder or the cache's folder cannot be used, or threads cannot be started.
    pub fn start(
        objects: Objects,
        clock: &Arc<dyn Clock>,
        config: &ResourceConfig,
        channels: Channels,
        version: &str,
    ) -> SqlResult<Self> {
        let blocks = Arc::new(block_cache(config)?);
        let fragments = Arc::new(FragmentCache::new(config.fragment_cache_bytes));
        let scans = Arc::new(ScanPlanner::new(objects, Arc::default(), Arc::clone(&blocks), fragments));
        let memory = WorkerMemory::new(Arc::new(UnboundedMemoryPool::default()), Some(config.memory_bytes));
        limit_large_values(config.memory_bytes, config.cache_bytes + config.fragment_cache_bytes);
        let mut runtime = operator_runtime(config.memory_bytes, &config.spill())?.as_ref().clone();
        runtime.memory_pool = Arc::clone(&memory) as Arc<dyn MemoryPool>;
        let inner = Arc::new(SharedWorkerState {
            scans,
            blocks,
            fragment_cache_bytes: config.fragment_cache_bytes,
            threads: RwLock::new((Arc::new(start_query_threads(config, clock)?), config.threads.max(1))),
            memory,
            runtime: Arc::new(runtime),
            spill_bytes_max: AtomicU64::new(config.spill_bytes_max),
            clock: Arc::clone(clock),
            channels,
            runs: Mutex::default(),
            cache_warming: CacheWarmingCounters::default(),
        });
        let library = datafusion_distributed::Worker::from_session_builder(TaskSessionBuilder(Arc::clone(&inner)))
            .with_runtime_env(Arc::clone(&inner.runtime))
            .with_version(version.to_owned());
        Ok(Self { inner, library })
    }

    /// Accepts tasks on incoming connections until `incoming` ends. The peers were authenticated before.
    ///
    /// # Errors
    /// Errors of HTTP/2.
    pub async fn serve(&self, incoming: impl Stream<Item = io::Result<Box<dyn ByteStream>>> + Send) -> io::Result<()> {
        serve(self.library.clone(), incoming).await.map_err(io::Error::other)
    }

    /// Changes the limits. Running tasks lose nothing: a task above the new memory limit gets no more memory, and the
    /// old threads end with the last task that began on them.
    ///
    /// # Errors
    /// If threads cannot be started; no limit is changed then.
    pub fn configure(&self, share: &WorkerLimits) -> io::Result<()> {
        let threads = share.threads.max(1);
        if self.inner.threads.read().1 != threads {
            let started = QueryThreads::start(threads, &self.inner.clock)?;
            let old = std::mem::replace(&mut *self.inner.threads.write(), (Arc::new(started), threads));
            drop(old);
        }
        self.inner.memory.set_limit(Some(share.memory_bytes));
        limit_large_values(share.memory_bytes, share.cache_bytes + self.inner.fragment_cache_bytes);
        self.inner.blocks.set_capacity(share.cache_bytes, share.cache_disk);
        self.inner.spill_bytes_max.store(share.spill_bytes_max, Ordering::Relaxed);
        Ok(())
    }

    /// Enforces, while it is polled, the limit on spilled bytes and the reserve of the spill folder's disk.
    pub fn enforce_spill_limit<'a>(&'a self, reserve: &'a DiskReserve, health: &'a ServiceHealth) -> BoxFuture<'a, ()> {
        let most = || self.inner.spill_bytes_max.load(Ordering::Relaxed);
        Box::pin(enforce_spill_limit(&self.inner.runtime.disk_manager, reserve, most, &self.inner.clock, health))
    }

    /// Returns the hot blocks of the cache that `is_wanted` selects: see [`shards::BlockCache::hot_blocks`].
    #[must_use]
    pub fn hot_blocks(&self, is_wanted: impl Fn(BlockLocation) -> bool, bytes_max: u64) -> Vec<HotBlock> {
        self.inner.blocks.hot_blocks(is_wanted, bytes_max)
    }

    /// Stores a block of another worker's cache if it is intact and there is memory for it. Returns whether it was
    /// stored.
    pub fn receive_block(&self, rows: usize, record: &Bytes) -> bool {
        self.inner.blocks.insert_record(rows, record)
    }

    /// Returns the number of queries with open task streams here.
    #[must_use]
    pub fn running_queries(&self) -> usize {
        let runs = self.inner.runs.lock();
        runs.values().filter_map(Weak::upgrade).filter(|run| run.active.is_any_open()).count()
    }

    /// Returns the bytes of memory that tasks have reserved.
    #[must_use]
    pub fn memory_used(&self) -> usize {
        self.inner.memory.used()
    }

    /// Returns the use of the column cache and the fragment cache.
    #[must_use]
    pub fn cache_tiers(&self) -> Vec<TierStats> {
        self.inner.scans.cache_tiers()
    }

    pub(super) fn scans(&self) -> &ScanPlanner {
        &self.inner.scans
    }

    pub(super) fn blocks(&self) -> &Arc<BlockCache> {
        &self.inner.blocks
    }

    pub(super) fn cache_warming_counters(&self) -> &CacheWarmingCounters {
        &self.inner.cache_warming
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("threads", &self.inner.threads.read().1).finish_non_exhaustive()
    }
}

impl SharedWorkerState {
    /// Returns the run with this id, which its first task creates.
    fn get_or_create_run(&self, header: &TaskRequestHeader) -> Arc<QueryRun> {
        let mut runs = self.runs.lock();
        if let Some(run) = runs.get(&header.run).and_then(Weak::upgrade) {
            return run;
        }
        runs.retain(|_, run| run.strong_count() != 0);
        let share = Arc::new(QueryShare::new(header.priority));
        let run = Arc::new(QueryRun { memory: QueryMemory::default(), share, active: Arc::default() });
        runs.insert(header.run, Arc::downgrade(&run));
        run
    }

    /// Prepares a task's plan for this worker. A repartition or broadcast at the top belongs to the library and stays
    /// above the stage operator.
    fn prepare_plan(&self, plan: Arc<dyn ExecutionPlan>, here: &TaskRun) -> DfResult<Arc<dyn ExecutionPlan>> {
        if plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>() {
            let below =
                plan.children().into_iter().map(|below| self.wrap_fragment(below, here)).collect::<DfResult<_>>()?;
            return replace_children_if_necessary(plan, below);
        }
        self.wrap_fragment(&plan, here)
    }

    /// Wraps a fragment in a [`TaskExec`], compiled if the engine is on.
    fn wrap_fragment(&self, plan: &Arc<dyn ExecutionPlan>, here: &TaskRun) -> DfResult<Arc<dyn ExecutionPlan>> {
        let stop = CancellationToken::new();
        let watched = make_cancellable(Arc::clone(plan), &stop)?;
        let covered = if here.engine { compile_below_routing(watched)? } else { watched };
        let (threads, share) = (Arc::clone(&self.threads.read().0), Arc::clone(&here.run.share));
        let active = Arc::clone(&here.run.active);
        Ok(Arc::new(TaskExec::new(covered, Arc::clone(plan.properties()), threads, share, active, stop)?))
    }
}

/// Compiles a stage. An operator that routes rows to bucket owners stays on top; its input is compiled.
fn compile_below_routing(stage: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if stage.is::<RouteToOwnersExec>() {
        let below = stage
            .children()
            .into_iter()
            .map(|below| compile_below_routing(Arc::clone(below)))
            .collect::<DfResult<_>>()?;
        return replace_children_if_necessary(stage, below);
    }
    compile_stage(stage)
}

/// Session extension of a task: keeps its run alive.
#[derive(Debug)]
struct TaskRun {
    run: Arc<QueryRun>,
    engine: bool,
}

/// Builder of task sessions.
struct TaskSessionBuilder(Arc<SharedWorkerState>);

#[async_trait]
impl WorkerSessionBuilder for TaskSessionBuilder {
    async fn build_session_state(&self, context: WorkerQueryContext) -> DfResult<SessionState> {
        build_session(&self.0, context).map_err(encode_error)
    }
}

/// Builds the session of a task from the query's header.
fn build_session(worker: &Arc<SharedWorkerState>, context: WorkerQueryContext) -> DfResult<SessionState> {
    let header = TaskRequestHeader::from_headers(&metadata(context.headers))?;
    let run = worker.get_or_create_run(&header);
    let runtime = run.memory.limit_runtime(&worker.runtime, header.memory);
    let mut builder = context.builder.with_runtime_env(runtime);
    let config: &mut SessionConfig = builder.config().get_or_insert_default();
    header.apply(config)?;
    // Parallelism follows this worker's threads, not the coordinator's.
    let threads = worker.threads.read().1;
    let parts = header.memory.map_or(threads, |memory| binder::partitions_for_memory(memory, threads));
    config.options_mut().execution.target_partitions = parts;
    config.set_extension(Arc::new(TaskRun { run, engine: header.engine }));
    config.set_distributed_user_codec(Codec::decoder(Arc::clone(&worker.scans)));
    config.set_distributed_channel_resolver(worker.channels.clone());
    let inner = Arc::clone(worker);
    config.set_distributed_worker_plan_rewrite_handler(move |event: WorkerPlanRewriteEvent<'_>| {
        let here = event.session_config.get_extension::<TaskRun>();
        let here = here.ok_or_else(|| datafusion::common::exec_datafusion_err!("the session of a task has no run"))?;
        let staged = inner.prepare_plan(event.plan, &here).map_err(encode_error)?;
        Ok(WorkerPlanRewriteEventResponse::new(staged))
    });
    Ok(builder.build())
}
