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
    note(rustix::process::setpriority_process(None, NICENESS));
}

/// A thread's number to the system.
#[cfg(target_os = "linux")]
pub(super) type ThreadId = rustix::process::Pid;

/// The calling thread's number; `None` where the system does not say it.
#[cfg(target_os = "linux")]
pub(super) fn own_thread() -> Option<ThreadId> {
    let path = std::fs::read_link("/proc/thread-self").ok()?;
    ThreadId::from_raw(path.file_name()?.to_str()?.parse().ok()?)
}

/// Gives another thread, which must still be there, the low priority for the rest of its life.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority_of(thread: ThreadId) {
    note(rustix::process::setpriority_process(Some(thread), NICENESS));
}

#[cfg(target_os = "linux")]
fn note(outcome: rustix::io::Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "could not lower the priority of a background thread");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

#[cfg(not(target_os = "linux"))]
pub(super) type ThreadId = ();

#[cfg(not(target_os = "linux"))]
pub(super) fn own_thread() -> Option<ThreadId> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lower_priority_of(_: ThreadId) {}
