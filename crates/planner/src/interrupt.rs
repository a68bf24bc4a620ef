//! The interrupt of planning: who waits for a plan no longer says so here, and recursions and rules ask.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use types::SqlResult;

use crate::stop::canceled;

/// Set once nobody waits for the work any more.
pub type Interrupt = Arc<AtomicBool>;

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// Does `work`, which [`check`] ends when `interrupt` is set.
pub fn interruptible<T>(interrupt: Interrupt, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(CURRENT.replace(Some(interrupt)));
    work()
}

struct Restored(Option<Interrupt>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// For loops and recursions whose length or depth a statement's text decides.
///
/// # Errors
/// `57014` once nobody waits for the work of this thread.
pub fn check() -> SqlResult<()> {
    let is_set = CURRENT.with_borrow(|current| current.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)));
    if is_set { Err(canceled()) } else { Ok(()) }
}
