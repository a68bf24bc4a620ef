//! Threads that run operators, separate from those that serve connections: a busy query never delays a cancel request.
//!
//! As many tasks run at once as there are threads, each in turns of about a millisecond, longer among long queries. In
//! reading order:
//!
//! - `turn_queue.rs` orders waiting tasks by how much thread time their queries had (`query_share.rs`).
//! - `turns.rs` grants turns, `query_task.rs` is a task that runs in turns.
//! - `spawned_tasks.rs` makes tasks that DataFusion's operators spawn run in turns, too.
//! - `background.rs` lowers the priority of threads with long computations.
//! - `stuck_threads.rs` reports threads whose task does not yield.
//! - `planning.rs` has separate threads for planning statements.

mod background;
mod planning;
mod query_share;
mod query_task;
mod spawned_tasks;
mod stuck_threads;
mod turn_queue;
mod turns;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use types::stack_limit::PLAN_STACK_BYTES;
use types::{Clock, value_memory};

pub use planning::PlanningThreads;
pub use query_share::{Priority, QueryShare};
pub use query_task::{block_outside_turn, clock, in_same_query, long_run_permit, run_long, yield_if_due};
pub use stuck_threads::{StuckThread, stuck_threads};
use turns::Turns;

/// Maximum number of blocked threads (`outside`, `run_long`), each of which is replaced by another thread. At most one
/// per thread of each running query blocks, and sessions are far fewer than this; a thread is created only when one
/// blocks.
const BLOCKED_THREADS_MAX: usize = 1 << 15;

/// Threads that run query tasks.
pub struct QueryThreads {
    /// Runtime of the threads; `None` during drop, and if tasks run on the caller's runtime.
    runtime: Option<Runtime>,
    turns: Arc<Turns>,
}

impl QueryThreads {
    /// Starts threads on which `count` tasks run at once, and makes DataFusion, the engine and operators yield at the
    /// end of turns. With a count of 0, tasks run on the caller's runtime, without turns.
    ///
    /// # Errors
    /// If the system cannot create threads.
    pub fn start(count: usize, clock: &Arc<dyn Clock>) -> io::Result<Self> {
        let turns = Turns::new(count, clock);
        if count == 0 {
            return Ok(Self { runtime: None, turns });
        }
        spawned_tasks::install_tracer();
        plan::cancellation::set_yield_hook(query_task::run_part);
        engine::set_yielding_runner(query_task::run_part);
        value_memory::set_allocation_check(query_task::check_large_value);
        // Twice as many threads, since young queries get turns in addition to those of old ones.
        let number = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(count * 2)
            .thread_name_fn(move || format!("query-{}", number.fetch_add(1, Ordering::Relaxed)))
            .max_blocking_threads(BLOCKED_THREADS_MAX)
            .thread_stack_size(PLAN_STACK_BYTES)
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime), turns })
    }

    /// Runs `task` as part of a query until it ends or the handle is dropped.
    pub fn spawn<T: Send + 'static>(
        &self,
        query: &Arc<QueryShare>,
        task: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        self.spawn_until(&CancellationToken::new(), query, task)
    }

    /// Runs `task` as [`QueryThreads::spawn`] does. When `stop` is cancelled, the task also ends in the middle of a
    /// computation.
    pub fn spawn_until<T: Send + 'static>(
        &self,
        stop: &CancellationToken,
        query: &Arc<QueryShare>,
        task: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        let handle = match &self.runtime {
            Some(runtime) => runtime.spawn(query_task::run_in_turns(&self.turns, query, stop, task)),
            None => tokio::spawn(task),
        };
        AbortOnDropHandle::new(handle)
    }

    /// Returns the runtime for tasks that belong to no query and take no turns.
    #[must_use]
    pub fn runtime_handle(&self) -> Handle {
        self.runtime.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }

    /// Returns the number of tasks that have not ended.
    #[must_use]
    pub fn unfinished_tasks(&self) -> usize {
        self.runtime.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks())
    }
}

/// Shuts down in the background: a runtime must not block when dropped in asynchronous code.
impl Drop for QueryThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
