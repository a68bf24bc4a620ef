//! Ends the planning of a statement when its client waits no longer, or when it takes more memory than there is: recursions and rules call [`check`].
//! [`canceled`] is the error of every statement that its user stopped.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::allocated::held_bytes;
use crate::{Condition, SqlError, SqlResult};

/// Set once nobody waits for the work any more.
pub type Interrupt = Arc<AtomicBool>;

/// Planning one statement may always take so much, even where the shared limit is reached.
const OWN_BYTES: i64 = 8 << 20;

/// A thread reports its memory after it has changed by this many bytes, so that most checks touch nothing shared.
const STEP_BYTES: i64 = 1 << 20;

/// Memory of all statements that are planned at the same time, as far as they ask whether to go on.
#[derive(Debug)]
pub struct PlanningMemory {
    limit_bytes: i64,
    /// The sum of what the planning threads have reported.
    held_bytes: AtomicI64,
}

impl PlanningMemory {
    /// Limits the planning of all statements together to `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { limit_bytes: i64::try_from(bytes).unwrap_or(i64::MAX), held_bytes: AtomicI64::new(0) }
    }
}

/// One planning job on this thread.
struct Work {
    interrupt: Interrupt,
    memory: Arc<PlanningMemory>,
    /// Bytes that the thread held when the job began.
    before_bytes: i64,
    /// Its part of [`PlanningMemory::held_bytes`].
    reported_bytes: i64,
    has_no_memory: bool,
}

impl Work {
    fn check(&mut self) -> SqlResult<()> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(canceled());
        }
        let own = held_bytes() - self.before_bytes;
        let more = own - self.reported_bytes;
        if STEP_BYTES <= more.abs() {
            self.reported_bytes = own;
            let all = self.memory.held_bytes.fetch_add(more, Ordering::Relaxed) + more;
            self.has_no_memory |= 0 < more && OWN_BYTES < own && self.memory.limit_bytes < all;
        }
        if self.has_no_memory { Err(out_of_memory(own)) } else { Ok(()) }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.memory.held_bytes.fetch_sub(self.reported_bytes, Ordering::Relaxed);
    }
}

fn out_of_memory(own_bytes: i64) -> SqlError {
    SqlError::new(Condition::OutOfMemory, "out of memory")
        .with_detail(format!(
            "Planning the statement takes {} MB, and there is no more memory for planning.",
            own_bytes >> 20
        ))
        .with_hint("Split the statement, or send it when fewer others are planned.")
}

thread_local! {
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Does `work`, which [`check`] ends when `interrupt` is set, or `memory` has no more for it.
pub fn interruptible<T>(interrupt: Interrupt, memory: &Arc<PlanningMemory>, work: impl FnOnce() -> T) -> T {
    let memory = Arc::clone(memory);
    let own = Work { interrupt, memory, before_bytes: held_bytes(), reported_bytes: 0, has_no_memory: false };
    let _restored = Restored(CURRENT.replace(Some(own)));
    work()
}

struct Restored(Option<Work>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// `57014`: the statement was stopped by its user.
#[must_use]
pub fn canceled() -> SqlError {
    SqlError::new(Condition::QueryCanceled, "canceling statement due to user request")
}

/// For loops and recursions whose length or depth a statement's text decides.
///
/// # Errors
/// `57014` once nobody waits for the work of this thread, `53200` once there is no memory for it.
pub fn check() -> SqlResult<()> {
    CURRENT.with_borrow_mut(|work| work.as_mut().map_or(Ok(()), Work::check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocated::{note_allocated, note_freed};

    #[test]
    fn work_has_its_own_memory_and_then_what_others_leave() {
        let memory = Arc::new(PlanningMemory::new(1 << 30));
        let held = || memory.held_bytes.load(Ordering::Relaxed);
        memory.held_bytes.fetch_add(1 << 30, Ordering::Relaxed);
        interruptible(Interrupt::default(), &memory, || {
            note_allocated(OWN_BYTES as usize);
            check().unwrap();
            assert_eq!(held(), (1 << 30) + OWN_BYTES);
            note_allocated(2 * STEP_BYTES as usize);
            assert_eq!(check().unwrap_err().condition, Condition::OutOfMemory);
            // Whoever goes on all the same is told again.
            note_freed(4 * STEP_BYTES as usize);
            assert_eq!(check().unwrap_err().condition, Condition::OutOfMemory);
        });
        assert_eq!(held(), 1 << 30);
        memory.held_bytes.fetch_sub(1 << 29, Ordering::Relaxed);
        interruptible(Interrupt::default(), &memory, || {
            note_allocated(100 * STEP_BYTES as usize);
            check().unwrap();
        });
        assert_eq!(held(), 1 << 29);
    }
}
