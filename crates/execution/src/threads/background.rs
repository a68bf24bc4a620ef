//! A thread of low priority, for what cannot pause: beside those that have turns it gets a third of what one of them gets of the cores,
//! and all of a core that nobody else needs.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// The niceness of the thread: its weight to Linux is a third of what threads have that serve turns.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// What `compute` gives, computed on a thread of its own. Blocks the thread that waits for it.
pub(super) fn in_background<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    scope(|threads| {
        let compute = || {
            lower_priority();
            compute()
        };
        let thread = Builder::new().name("background".to_owned()).spawn_scoped(threads, compute);
        let outcome = thread.expect("the machine has room for another thread").join();
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Of the calling thread alone, which Linux counts as a process. Without it the computation is right too, only not as modest.
#[cfg(target_os = "linux")]
fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "a thread of the background keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
