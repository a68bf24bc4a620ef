//! Parallel workers of a pipeline, and the accounting of memory that they collect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::Batch;
use engine::aggregate::Groups;
use engine::join::Build;
use engine::pipeline::{Busy, Collected, Room, Worker};
use engine::sort::Sorting;
use parking_lot::Mutex;
use scheduler::{beside, pause};
use tokio::task::{JoinError, JoinSet};

use crate::ended::Ended;
use crate::spill::{Parts, RunWriter, SortedRun, Spiller};

/// Granularity of memory requests in bytes: all queries share one pool.
const STEP_BYTES: usize = 256 << 10;

/// One worker of a pipeline.
pub(super) struct Member {
    pub(super) number: usize,
    pub(super) worker: Worker,
    pub(super) own: Own,
    /// Resources of the downstream worker.
    pub(super) own_ahead: Option<Own>,
    /// Time in which it produced the batches of its source.
    pub(super) source_busy: Option<Busy>,
    /// Error that stopped it before a LIMIT. It is dropped if the limit is reached without it.
    pub(super) deferred_error: Option<Ended>,
}

/// Memory and files of one worker.
pub(super) struct Own {
    /// Memory of its sink. It is retained until the result of all workers is accounted.
    pub(super) held: Arc<MemoryReservation>,
    /// Receives rows without room in memory.
    pub(super) spiller: Option<Arc<Mutex<Spiller>>>,
    /// Receives rows to sort without room in memory.
    pub(super) sorter: Option<Arc<Mutex<RunWriter>>>,
    /// True if the spiller receives all rows, because a join on disk follows.
    pub(super) gives_parts: bool,
}

impl Member {
    /// Returns the build rows that it has collected.
    pub(super) fn build(&self) -> Option<&Build> {
        if let Collected::Build(build) = self.worker.collected() { Some(build) } else { None }
    }

    /// Returns the groups that it has collected.
    pub(super) fn groups(&self) -> Option<&Groups> {
        if let Collected::Groups(groups) = self.worker.collected() { Some(groups) } else { None }
    }

    /// Returns the rows that it has collected for a sort.
    pub(super) fn sorting(&self) -> Option<&Sorting> {
        self.worker.sorting()
    }

    /// Adds a time in which it produced a batch of its source.
    pub(super) fn add_source(&mut self, busy: Option<Busy>) {
        self.source_busy = match (self.source_busy, busy) {
            (Some(before), Some(busy)) => Some(before.and(busy)),
            (before, busy) => before.or(busy),
        };
    }

    /// Returns whether it has spilled rows.
    pub(super) fn has_spilled(&self) -> bool {
        self.own.spiller.as_ref().is_some_and(|spiller| spiller.lock().has_rows())
            || self.own.sorter.as_ref().is_some_and(|sorter| sorter.lock().has_runs())
    }

    /// Returns its spilled rows.
    pub(super) fn spilled(&self) -> Option<engine::Result<Parts>> {
        self.own.spiller.as_ref().map(|spiller| spiller.lock().finish())
    }

    /// Returns its spilled runs of a sort.
    pub(super) fn runs(&self) -> Vec<SortedRun> {
        self.own.sorter.as_ref().map(|sorter| sorter.lock().finish()).unwrap_or_default()
    }
}

impl Own {
    /// Spills rows.
    pub(super) fn push(&self, rows: Vec<Batch>) -> engine::Result<()> {
        let Some(spiller) = &self.spiller else { return Err(engine::Error::Form("a spilling stage has no spiller")) };
        let mut spiller = spiller.lock();
        rows.iter().try_for_each(|batch| spiller.push(batch))
    }

    /// Returns the spilled rows, if there are any.
    pub(super) fn rows_spilled(&self) -> engine::Result<Option<Parts>> {
        let Some(spiller) = &self.spiller else { return Ok(None) };
        let mut spiller = spiller.lock();
        if spiller.has_rows() { spiller.finish().map(Some) } else { Ok(None) }
    }
}

/// Returns how much of all memory sinks that can spill may take together. The rest is for reading back what was
/// spilled.
fn collected_max(limit: usize) -> usize {
    limit / 4 * 3
}

/// Returns how much memory one worker may take in any case.
fn few(limit: usize) -> usize {
    limit / 64
}

/// Returns a callback that resizes `held` to the bytes that a worker has collected. A worker that can spill may not use
/// up all memory.
pub(super) fn room(held: &Arc<MemoryReservation>, context: &TaskContext, can_spill: bool) -> Box<Room> {
    let (held, pool) = (Arc::clone(held), Arc::clone(context.memory_pool()));
    let bounds = match pool.memory_limit() {
        MemoryLimit::Finite(limit) if can_spill => Some((few(limit), collected_max(limit))),
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
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        let is_beyond = bounds.is_some_and(|(few, most)| few < wanted && most < pool.reserved() + (wanted - size));
        if is_beyond || held.try_resize(wanted).is_err() {
            return Err(engine::Error::Memory("the rows that a pipeline collects"));
        }
        Ok(())
    })
}

/// Calls `make` for each number in parallel tasks, at most `tasks` of them, and returns the results in order. Stops
/// between two numbers.
pub(super) async fn all<T: Send + 'static>(
    count: usize,
    tasks: usize,
    stop: &Arc<AtomicBool>,
    make: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<Vec<T>, Ended> {
    let (next, make) = (Arc::new(AtomicUsize::new(0)), Arc::new(make));
    let mut running = JoinSet::new();
    for _ in 0..tasks.min(count) {
        let (next, make, stop) = (Arc::clone(&next), Arc::clone(&make), Arc::clone(stop));
        running.spawn(beside(async move {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if count <= number || stop.load(Ordering::Relaxed) {
                    return made;
                }
                made.push((number, make(number)));
                pause().await;
            }
        }));
    }
    let mut made = Vec::with_capacity(count);
    while let Some(outcome) = running.join_next().await {
        made.extend(outcome.map_err(died)?);
    }
    if stop.load(Ordering::Relaxed) {
        return Err(engine::Error::Stopped.into());
    }
    made.sort_unstable_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

/// Returns the error of a task that ended early, or continues its panic.
fn died(error: JoinError) -> Ended {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => DataFusionError::Execution(format!("a worker of a pipeline was aborted: {error}")).into(),
    }
}

/// Runs the workers and returns them in order. The first error stops the others; it is returned once all have ended, so
/// that they hold no resources any more.
pub(super) async fn each<F>(
    members: Vec<Member>,
    stop: &AtomicBool,
    run: impl Fn(Member) -> F,
) -> Result<Vec<Member>, Ended>
where
    F: Future<Output = Result<Member, Ended>> + Send + 'static,
{
    let mut running: JoinSet<Result<Member, Ended>> = members.into_iter().map(|member| beside(run(member))).collect();
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
        Some(Err(error)) => Err(died(error)),
    }
}
