//! The threads that run operators, apart from those that serve connections: a busy query never delays a cancel request.
//!
//! As many tasks run at once as there are threads, each for its turn: about a millisecond, longer among long queries. Whose turn comes next `queue.rs` says, of what
//! each query has had (`share.rs`); `turns.rs` gives them, `task.rs` is a task that takes them, `operators.rs` has the tasks of DataFusion's operators take them too.
//! `standing.rs` knows the threads whose task does not give them back. `planning.rs` has other threads, for what comes before operators run.

mod background;
mod operators;
mod planning;
mod queue;
mod share;
mod standing;
mod task;
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
use types::stack::PLAN_STACK;
use types::{Clock, value_guard};

pub use planning::PlanningThreads;
pub use share::{Priority, QueryShare};
pub use standing::{StandingThread, standing_threads};
pub use task::{at_length, beside, clock, outside, pause, place};
use turns::Turns;

/// Threads that may wait with their own means (`outside`, `at_length`) before one that is to take the place of another would not be there. Waits
/// are at most one for each thread of each running query, and sessions are far fewer than this; a thread is made only when one begins to wait.
const WAITING_MAX: usize = 1 << 15;

/// A runtime for operators.
pub struct Threads {
    /// `None` while dropped, and where tasks run on the runtime of whoever starts them.
    runtime: Option<Runtime>,
    turns: Arc<Turns>,
}

impl Threads {
    /// Starts threads on which `count` tasks run at once, and has DataFusion, the engine and operators give way to others by turns; with none,
    /// tasks run where they are started, and take no turns.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(count: usize, clock: &Arc<dyn Clock>) -> io::Result<Self> {
        let turns = Turns::new(count, clock);
        if count == 0 {
            return Ok(Self { runtime: None, turns });
        }
        operators::take_turns();
        plan::stop::give_way_by(task::give_way);
        engine::run_parts_by(task::give_way);
        value_guard::answer_by(task::may_make);
        // Twice as many: young queries have turns beside old ones.
        let number = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(count * 2)
            .thread_name_fn(move || format!("query-{}", number.fetch_add(1, Ordering::Relaxed)))
            .max_blocking_threads(WAITING_MAX)
            .thread_stack_size(PLAN_STACK)
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime), turns })
    }

    /// Runs `task`, which is part of a query, on these threads until it ends or the handle is dropped.
    pub fn spawn<T: Send + 'static>(
        &self,
        query: &Arc<QueryShare>,
        task: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        self.spawn_until(&CancellationToken::new(), query, task)
    }

    /// As [`Threads::spawn`], with what fires when nobody waits for the task any more: then it ends in the midst of a step too.
    pub fn spawn_until<T: Send + 'static>(
        &self,
        stop: &CancellationToken,
        query: &Arc<QueryShare>,
        task: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        let handle = match &self.runtime {
            Some(runtime) => runtime.spawn(task::in_turns(&self.turns, query, stop, task)),
            None => tokio::spawn(task),
        };
        AbortOnDropHandle::new(handle)
    }

    /// Where tasks beside those of queries run: they take no turns.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.runtime.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }

    /// Tasks on these threads that have not ended.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.runtime.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks())
    }
}

/// A runtime must not be waited for where it is dropped in the midst of asynchronous code.
impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
