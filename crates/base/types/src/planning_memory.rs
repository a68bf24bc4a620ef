//! Memory limit of planning: shared by all statements that are being planned.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::allocation_counters::thread_bytes;
use crate::{Condition, SqlError, SqlResult};

/// Memory that planning of one statement may always use, even if the shared limit is reached, in bytes.
const GUARANTEED_BYTES: i64 = 8 << 20;

/// Change of a thread's memory after which it is reported, in bytes, so that most checks touch no shared data.
const REPORT_BYTES: i64 = 1 << 20;

/// Shared memory limit of all statements that are being planned.
#[derive(Debug)]
pub struct PlanningMemory {
    limit_bytes: i64,
    /// Sum of the memory that planning threads have reported.
    reported_bytes: AtomicI64,
}

impl PlanningMemory {
    /// Creates a limit of `bytes` for all planning together.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { limit_bytes: i64::try_from(bytes).unwrap_or(i64::MAX), reported_bytes: AtomicI64::new(0) }
    }
}

/// Memory of one planning job, which runs on one thread.
pub(crate) struct JobMemory {
    shared: Arc<PlanningMemory>,
    /// Memory of the thread when the job started.
    initial_bytes: i64,
    /// The job's share of [`PlanningMemory::reported_bytes`].
    reported_bytes: i64,
    /// Whether the job has exceeded its memory; it stays true.
    is_exceeded: bool,
}

impl JobMemory {
    /// Starts to measure the memory of this thread.
    pub(crate) fn new(shared: Arc<PlanningMemory>) -> Self {
        Self { shared, initial_bytes: thread_bytes(), reported_bytes: 0, is_exceeded: false }
    }

    /// Checks whether the job may use the memory that it has allocated.
    ///
    /// # Errors
    /// `53200` if the job has exceeded the limit, now or before.
    pub(crate) fn check(&mut self) -> SqlResult<()> {
        let own = thread_bytes() - self.initial_bytes;
        let more = own - self.reported_bytes;
        if REPORT_BYTES <= more.abs() {
            self.reported_bytes = own;
            let all = self.shared.reported_bytes.fetch_add(more, Ordering::Relaxed) + more;
            self.is_exceeded |= 0 < more && GUARANTEED_BYTES < own && self.shared.limit_bytes < all;
        }
        if self.is_exceeded { Err(out_of_memory_error(own)) } else { Ok(()) }
    }
}

impl Drop for JobMemory {
    fn drop(&mut self) {
        self.shared.reported_bytes.fetch_sub(self.reported_bytes, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation_counters::{count_allocation, count_deallocation};
    use crate::interrupt::{Interrupt, check, run_interruptible};

    #[test]
    fn work_has_its_own_memory_and_then_what_others_leave() {
        let memory = Arc::new(PlanningMemory::new(1 << 30));
        let held = || memory.reported_bytes.load(Ordering::Relaxed);
        memory.reported_bytes.fetch_add(1 << 30, Ordering::Relaxed);
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
        memory.reported_bytes.fetch_sub(1 << 29, Ordering::Relaxed);
        run_interruptible(Interrupt::default(), &memory, || {
            count_allocation(100 * REPORT_BYTES as usize);
            check().unwrap();
        });
        assert_eq!(held(), 1 << 29);
    }
}
