//! Cancellation and memory limit of planning. Recursive functions and optimizer rules call [`check`], which fails when
//! the statement is canceled or planning exceeds its memory.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::allocation_counters::thread_bytes;
use crate::{Condition, SqlError, SqlResult};

/// Cancellation flag: true once nobody waits for the work any more.
pub type Interrupt = Arc<AtomicBool>;

/// Memory that planning of one statement may always use, even if the shared limit is reached, in bytes.
const GUARANTEED_BYTES: i64 = 8 << 20;

/// Change of a thread's memory after which it is reported, in bytes, so that most checks touch no shared data.
const REPORT_BYTES: i64 = 1 << 20;

/// Shared memory limit of all statements that are being planned.
#[derive(Debug)]
pub struct PlanningMemory {
    limit_bytes: i64,
    /// Sum of the memory that planning threads have reported.
    held_bytes: AtomicI64,
}

impl PlanningMemory {
    /// Creates a limit of `bytes` for all planning together.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { limit_bytes: i64::try_from(bytes).unwrap_or(i64::MAX), held_bytes: AtomicI64::new(0) }
    }
}

/// The planning job that runs on this thread.
struct PlanningJob {
    interrupt: Interrupt,
    memory: Arc<PlanningMemory>,
    /// Memory of the thread when the job started.
    initial_bytes: i64,
    /// The job's share of [`PlanningMemory::held_bytes`].
    reported_bytes: i64,
    /// Whether the job has exceeded its memory; it stays true.
    is_out_of_memory: bool,
}

impl PlanningJob {
    fn check(&mut self) -> SqlResult<()> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(canceled_error());
        }
        let own = thread_bytes() - self.initial_bytes;
        let more = own - self.reported_bytes;
        if REPORT_BYTES <= more.abs() {
            self.reported_bytes = own;
            let all = self.memory.held_bytes.fetch_add(more, Ordering::Relaxed) + more;
            self.is_out_of_memory |= 0 < more && GUARANTEED_BYTES < own && self.memory.limit_bytes < all;
        }
        if self.is_out_of_memory { Err(out_of_memory_error(own)) } else { Ok(()) }
    }
}

impl Drop for PlanningJob {
    fn drop(&mut self) {
        self.memory.held_bytes.fetch_sub(self.reported_bytes, Ordering::Relaxed);
    }
}

fn out_of_memory_error(own_bytes: i64) -> SqlError {
    SqlError::new(Condition::OutOfMemory, "out of memory")
        .with_detail(format!(
            "Planning the statement uses {} MB, and the memory for planning is exhausted.",
            own_bytes >> 20
        ))
        .with_hint("Split the statement, or run it when fewer statements are being planned.")
}

thread_local! {
    static CURRENT: RefCell<Option<PlanningJob>> = const { RefCell::new(None) };
}

/// Runs `work` as a planning job, in which [`check`] fails once `interrupt` is set or `memory` is exhausted.
pub fn run_interruptible<T>(interrupt: Interrupt, memory: &Arc<PlanningMemory>, work: impl FnOnce() -> T) -> T {
    let memory = Arc::clone(memory);
    let job =
        PlanningJob { interrupt, memory, initial_bytes: thread_bytes(), reported_bytes: 0, is_out_of_memory: false };
    let _restored = RestoreGuard(CURRENT.replace(Some(job)));
    work()
}

/// Guard that restores the outer planning job.
struct RestoreGuard(Option<PlanningJob>);

impl Drop for RestoreGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
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
    CURRENT.with_borrow_mut(|work| work.as_mut().map_or(Ok(()), PlanningJob::check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation_counters::{count_allocation, count_deallocation};

    #[test]
    fn work_has_its_own_memory_and_then_what_others_leave() {
        let memory = Arc::new(PlanningMemory::new(1 << 30));
        let held = || memory.held_bytes.load(Ordering::Relaxed);
        memory.held_bytes.fetch_add(1 << 30, Ordering::Relaxed);
        run_interruptible(Interrupt::default(), &memory, || {
            count_allocation(GUARANTEED_BYTES as usize);
            check().unwrap();
            assert_eq!(held(), (1 << 30) + GUARANTEED_BYTES);
            count_allocation(2 * REPORT_BYTES as usize);
            assert_eq!(check().unwrap_err().condition, Condition::OutOfMemory);
            // Later checks keep failing.
            count_deallocation(4 * REPORT_BYTES as usize);
            assert_eq!(check().unwrap_err().condition, Condition::OutOfMemory);
        });
        assert_eq!(held(), 1 << 30);
        memory.held_bytes.fetch_sub(1 << 29, Ordering::Relaxed);
        run_interruptible(Interrupt::default(), &memory, || {
            count_allocation(100 * REPORT_BYTES as usize);
            check().unwrap();
        });
        assert_eq!(held(), 1 << 29);
    }
}
