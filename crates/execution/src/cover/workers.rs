//! The workers of a pipeline, side by side, and the memory that is counted for what they collect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use engine::pipeline::{Room, Worker};
use tokio::task::JoinSet;

use super::run::Ended;
use crate::threads::beside;

/// Memory is asked for in steps of so many bytes: the pool is one for all queries.
const STEP_BYTES: usize = 256 << 10;

/// One of a pipeline's workers.
pub(super) struct Member {
    pub(super) number: usize,
    pub(super) worker: Worker,
    /// What it has collected; kept until that is part of something that is counted itself.
    pub(super) held: Arc<MemoryReservation>,
    /// What the worker that it leads to has collected.
    pub(super) held_ahead: Option<Arc<MemoryReservation>>,
}

/// Memory of the query's, none yet.
pub(super) fn reservation(context: &TaskContext) -> MemoryReservation {
    MemoryConsumer::new("engine").register(context.memory_pool())
}

/// Lets `held` be as much as a worker says that it holds.
pub(super) fn room(held: &Arc<MemoryReservation>) -> Box<Room> {
    let held = Arc::clone(held);
    Box::new(move |bytes| {
        if bytes <= held.size() {
            return Ok(());
        }
        held.try_resize(bytes.next_multiple_of(STEP_BYTES))
            .map_err(|_| engine::Error::Memory("what a program collects"))
    })
}

/// Runs the workers; gives them in their order. The first that fails stops the others, and all have ended when its error is given: what
/// they held is free for whoever runs instead.
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
        Some(Err(died)) => match died.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(DataFusionError::Execution(format!("a worker was stopped: {error}")).into()),
        },
    }
}
