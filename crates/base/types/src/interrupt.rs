//! Interruption of planning. Recursive functions and optimizer rules call [`check`], which fails when the statement is
//! canceled or planning exceeds its [`PlanningMemory`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::planning_memory::{JobMemory, PlanningMemory};
use crate::{Condition, SqlError, SqlResult};

/// Cancellation flag: true once nobody waits for the work any more.
pub type Interrupt = Arc<AtomicBool>;

/// The planning job that runs on this thread.
struct PlanningJob {
    interrupt: Interrupt,
    memory: JobMemory,
}

impl PlanningJob {
    fn check(&mut self) -> SqlResult<()> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(canceled_error());
        }
        self.memory.check()
    }
}

thread_local! {
    static CURRENT_JOB: RefCell<Option<PlanningJob>> = const { RefCell::new(None) };
}

/// Runs `work` as a planning job, in which [`check`] fails once `interrupt` is set or `memory` is exhausted.
pub fn run_interruptible<T>(interrupt: Interrupt, memory: &Arc<PlanningMemory>, work: impl FnOnce() -> T) -> T {
    let job = PlanningJob { interrupt, memory: JobMemory::new(Arc::clone(memory)) };
    let _restored = RestoreOuterJob(CURRENT_JOB.replace(Some(job)));
    work()
}

/// Guard that restores the outer planning job.
struct RestoreOuterJob(Option<PlanningJob>);

impl Drop for RestoreOuterJob {
    fn drop(&mut self) {
        CURRENT_JOB.set(self.0.take());
    }
}

/// Returns the error `57014` for a statement that its user canceled.
#[must_use]
pub fn canceled_error() -> SqlError {
    SqlError::new(Condition::QueryCanceled, "canceling statement due to user request")
}

/// Checks whether the planning job of this thread may continue. For loops and recursion whose length or depth depends
/// on the statement.
///
/// # Errors
/// `57014` if the statement is canceled, `53200` if planning has exceeded its memory.
pub fn check() -> SqlResult<()> {
    CURRENT_JOB.with_borrow_mut(|work| work.as_mut().map_or(Ok(()), PlanningJob::check))
}
