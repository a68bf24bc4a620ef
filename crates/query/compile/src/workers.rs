//! The workers of a pipeline, side by side, and the memory that is counted for what they collect.

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

/// Memory is asked for in steps of so many bytes: the pool is one for all queries.
const STEP_BYTES: usize = 256 << 10;

/// One of a pipeline's workers.
pub(super) struct Member {
    pub(super) number: usize,
    pub(super) worker: Worker,
    pub(super) own: Own,
    /// Of the worker that it leads to.
    pub(super) own_ahead: Option<Own>,
    /// When it made the batches of its source.
    pub(super) source_busy: Option<Busy>,
    /// The error that stopped it before a LIMIT. It is dropped if the limit is reached without it.
    pub(super) deferred_error: Option<Ended>,
}

/// What a worker has to itself.
pub(super) struct Own {
    /// For what it has collected; kept until that is part of something that is counted itself.
    pub(super) held: Arc<MemoryReservation>,
    /// Takes what it has no room for.
    pub(super) spiller: Option<Arc<Mutex<Spiller>>>,
    /// Takes what it sorts and has no room for.
    pub(super) sorter: Option<Arc<Mutex<RunWriter>>>,
    /// Whether that takes all its rows, for a join in parts.
    pub(super) gives_parts: bool,
}

impl Member {
    /// The build rows that it has collected.
    pub(super) fn build(&self) -> Option<&Build> {
        if let Collected::Build(build) = self.worker.collected() { Some(build) } else { None }
    }

    /// The groups that it has collected.
    pub(super) fn groups(&self) -> Option<&Groups> {
        if let Collected::Groups(groups) = self.worker.collected() { Some(groups) } else { None }
    }

    /// The rows that it has collected to be sorted.
    pub(super) fn sorting(&self) -> Option<&Sorting> {
        self.worker.sorting()
    }

    /// Adds a time in which it made a batch.
    pub(super) fn add_source(&mut self, busy: Option<Busy>) {
        self.source_busy = match (self.source_busy, busy) {
            (Some(before), Some(busy)) => Some(before.and(busy)),
            (before, busy) => before.or(busy),
        };
    }

    /// Whether rows had no room.
    pub(super) fn has_spilled(&self) -> bool {
        self.own.spiller.as_ref().is_some_and(|spiller| spiller.lock().has_rows())
            || self.own.sorter.as_ref().is_some_and(|sorter| sorter.lock().has_runs())
    }

    /// The rows that had no room.
    pub(super) fn spilled(&self) -> Option<engine::Result<Parts>> {
        self.own.spiller.as_ref().map(|spiller| spiller.lock().finish())
    }

    /// The runs of what it sorts that had no room.
    pub(super) fn runs(&self) -> Vec<SortedRun> {
        self.own.sorter.as_ref().map(|sorter| sorter.lock().finish()).unwrap_or_default()
    }
}

impl Own {
    /// Takes rows out of memory.
    pub(super) fn push(&self, rows: Vec<Batch>) -> engine::Result<()> {
        let Some(spiller) = &self.spiller else { return Err(engine::Error::Form("rows for no parts")) };
        let mut spiller = spiller.lock();
        rows.iter().try_for_each(|batch| spiller.push(batch))
    }

    /// The rows that were taken out of memory, if any were.
    pub(super) fn rows_spilled(&self) -> engine::Result<Option<Parts>> {
        let Some(spiller) = &self.spiller else { return Ok(None) };
        let mut spiller = spiller.lock();
        if spiller.has_rows() { spiller.finish().map(Some) } else { Ok(None) }
    }
}

/// What may be taken by what can be spilled, of all memory: of the rest, what was spilled is read again.
fn collected_max(limit: usize) -> usize {
    limit / 4 * 3
}

/// What a worker may take of that whatever others have.
fn few(limit: usize) -> usize {
    limit / 64
}

/// Lets `held` be as much as a worker says that it holds; where it can spill that, not all that there is.
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
            return Err(engine::Error::Memory("what a program collects"));
        }
        Ok(())
    })
}

/// What `make` gives of each number, made by at most so many tasks side by side. Stops between two numbers.
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

/// A task that has panicked ends its query alike.
fn died(error: JoinError) -> Ended {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => DataFusionError::Execution(format!("a worker was stopped: {error}")).into(),
    }
}

/// Runs the workers; gives them in their order. The first that fails stops the others, and all have ended when its error is returned: nothing of theirs is
/// held any more.
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
        // Others fail of being stopped.
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
