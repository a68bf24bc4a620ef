//! Parallel workers of a pipeline, and the accounting of memory that they collect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::Batch;
use engine::aggregate::Groups;
use engine::join::BuildCollector;
use engine::pipeline::{BusyTime, MemoryBudget, SinkState, Worker};
use engine::sort::SortCollector;
use parking_lot::Mutex;
use scheduler::{in_same_query, yield_if_due};
use tokio::task::{JoinError, JoinSet};

use crate::run_error::RunError;
use crate::spill_execution::{RunWriter, SortedRun, SpillPartitions, Spiller};

/// Granularity of memory requests in bytes: all queries share one pool.
const MEMORY_REQUEST_BYTES: usize = 256 << 10;

/// One worker of a pipeline.
pub(super) struct PipelineWorker {
    pub(super) number: usize,
    pub(super) worker: Worker,
    pub(super) resources: WorkerResources,
    /// Resources of the downstream worker.
    pub(super) downstream_resources: Option<WorkerResources>,
    /// Time in which it produced the batches of its source.
    pub(super) source_busy: Option<BusyTime>,
    /// Error that stopped it before a LIMIT. It is dropped if the limit is reached without it.
    pub(super) deferred_error: Option<RunError>,
}

/// Memory and files of one worker.
pub(super) struct WorkerResources {
    /// Memory of its sink. It is retained until the result of all workers is accounted.
    pub(super) memory: Arc<MemoryReservation>,
    /// Receives rows without room in memory.
    pub(super) spiller: Option<Arc<Mutex<Spiller>>>,
    /// Receives rows to sort without room in memory.
    pub(super) sorter: Option<Arc<Mutex<RunWriter>>>,
    /// True if the spiller receives all rows, because a join on disk follows.
    pub(super) spills_all: bool,
}

impl PipelineWorker {
    /// Returns the build rows that it has collected.
    pub(super) fn build(&self) -> Option<&BuildCollector> {
        if let SinkState::Build(build) = self.worker.sink_state() { Some(build) } else { None }
    }

    /// Returns the groups that it has collected.
    pub(super) fn groups(&self) -> Option<&Groups> {
        if let SinkState::Groups(groups) = self.worker.sink_state() { Some(groups) } else { None }
    }

    /// Returns the rows that it has collected for a sort.
    pub(super) fn sorting(&self) -> Option<&SortCollector> {
        self.worker.sorting()
    }

    /// Adds a time in which it produced a batch of its source.
    pub(super) fn add_source(&mut self, busy: Option<BusyTime>) {
        self.source_busy = match (self.source_busy, busy) {
            (Some(before), Some(busy)) => Some(before.merge(busy)),
            (before, busy) => before.or(busy),
        };
    }

    /// Returns whether it has spilled rows.
    pub(super) fn has_spilled(&self) -> bool {
        self.resources.spiller.as_ref().is_some_and(|spiller| spiller.lock().has_rows())
            || self.resources.sorter.as_ref().is_some_and(|sorter| sorter.lock().has_runs())
    }

    /// Returns its spilled rows.
    pub(super) fn spilled(&self) -> Option<engine::Result<SpillPartitions>> {
        self.resources.spiller.as_ref().map(|spiller| spiller.lock().finish())
    }

    /// Returns its spilled runs of a sort.
    pub(super) fn runs(&self) -> Vec<SortedRun> {
        self.resources.sorter.as_ref().map(|sorter| sorter.lock().finish()).unwrap_or_default()
    }
}

impl WorkerResources {
    /// Spills rows.
    pub(super) fn push(&self, rows: Vec<Batch>) -> engine::Result<()> {
        let Some(spiller) = &self.spiller else {
            return Err(engine::Error::Internal("a pipeline stage that must spill has no spill file writer"));
        };
        let mut spiller = spiller.lock();
        rows.iter().try_for_each(|batch| spiller.push(batch))
    }

    /// Returns the spilled rows, if there are any.
    pub(super) fn rows_spilled(&self) -> engine::Result<Option<SpillPartitions>> {
        let Some(spiller) = &self.spiller else { return Ok(None) };
        let mut spiller = spiller.lock();
        if spiller.has_rows() { spiller.finish().map(Some) } else { Ok(None) }
    }
}

/// Returns how much of all memory sinks that can spill may take together. The rest is for reading back what was
/// spilled.
fn spillable_bytes_max(limit: usize) -> usize {
    limit / 4 * 3
}

/// Returns how much memory one worker may take in any case.
fn guaranteed_bytes(limit: usize) -> usize {
    limit / 64
}

/// Returns a callback that resizes `held` to the bytes that a worker has collected. A worker that can spill may not use
/// up all memory.
pub(super) fn memory_callback(
    held: &Arc<MemoryReservation>,
    context: &TaskContext,
    can_spill: bool,
) -> Box<MemoryBudget> {
    let (held, pool) = (Arc::clone(held), Arc::clone(context.memory_pool()));
    let bounds = match pool.memory_limit() {
        MemoryLimit::Finite(limit) if can_spill => Some((guaranteed_bytes(limit), spillable_bytes_max(limit))),
        _ => None,
    };
    Box::new(move |bytes| {
        if bytes == 0 {
            held.free();
        }
        let size = held.size();
        if bytes <= size {
            return Ok(());
        }
        let wanted = bytes.next_multiple_of(MEMORY_REQUEST_BYTES);
        let is_beyond = bounds.is_some_and(|(few, most)| few < wanted && most < pool.reserved() + (wanted - size));
        if is_beyond || held.try_resize(wanted).is_err() {
            return Err(engine::Error::OutOfMemory("the rows that a pipeline collects"));
        }
        Ok(())
    })
}

/// Calls `make` for each number in parallel tasks, at most `tasks` of them, and returns the results in order. Stops
/// between two numbers.
pub(super) async fn run_numbered_tasks<T: Send + 'static>(
    count: usize,
    tasks: usize,
    stop: &Arc<AtomicBool>,
    make: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<Vec<T>, RunError> {
    let (next, make) = (Arc::new(AtomicUsize::new(0)), Arc::new(make));
    let mut running = JoinSet::new();
    for _ in 0..tasks.min(count) {
        let (next, make, stop) = (Arc::clone(&next), Arc::clone(&make), Arc::clone(stop));
        running.spawn(in_same_query(async move {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if count <= number || stop.load(Ordering::Relaxed) {
                    return made;
                }
                made.push((number, make(number)));
                yield_if_due().await;
            }
        }));
    }
    let mut made = Vec::with_capacity(count);
    while let Some(outcome) = running.join_next().await {
        made.extend(outcome.map_err(task_error)?);
    }
    if stop.load(Ordering::Relaxed) {
        return Err(engine::Error::Stopped.into());
    }
    made.sort_unstable_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

/// Returns the error of a task that ended early, or continues its panic.
fn task_error(error: JoinError) -> RunError {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => DataFusionError::Execution(format!("a worker of a pipeline was aborted: {error}")).into(),
    }
}

/// Runs the workers and returns them in order. The first error stops the others; it is returned once all have ended, so
/// that they hold no resources any more.
pub(super) async fn run_workers<F>(
    members: Vec<PipelineWorker>,
    stop: &AtomicBool,
    run: impl Fn(PipelineWorker) -> F,
) -> Result<Vec<PipelineWorker>, RunError>
where
    F: Future<Output = Result<PipelineWorker, RunError>> + Send + 'static,
{
    let mut running: JoinSet<Result<PipelineWorker, RunError>> =
        members.into_iter().map(|member| in_same_query(run(member))).collect();
    let (mut ended, mut failed) = (Vec::with_capacity(running.len()), None);
    while let Some(outcome) = running.join_next().await {
        let failure = match outcome {
            Ok(Ok(member)) => {
                ended.push(member);
                continue;
            }
            Ok(Err(error)) => Ok(error),
            Err(died) => Err(died),
        };
        // Other workers fail because they are stopped.
        failed.get_or_insert(failure);
        stop.store(true, Ordering::Relaxed);
        running.abort_all();
    }
    match failed {
        None => {
            ended.sort_by_key(|member| member.number);
            Ok(ended)
        }
        Some(Ok(error)) => Err(error),
        Some(Err(error)) => Err(task_error(error)),
    }
}
