//! Low-priority threads for computations that cannot yield: beside the threads that run turns, they get a third of a
//! thread's CPU share, and all of an idle core.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Niceness of such a thread: its weight in Linux is a third of the default.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Runs `compute` on a low-priority thread and blocks until it is done.
pub(super) fn run_at_low_priority<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
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

/// Lowers the priority of the calling thread only; Linux sets niceness per thread. On failure, the computation is still
/// correct.
#[cfg(target_os = "linux")]
fn lower_priority() {
    log_failure(rustix::process::setpriority_process(None, NICENESS));
}

/// Operating system id of a thread.
#[cfg(target_os = "linux")]
pub(super) type ThreadId = rustix::process::Pid;

/// Returns the id of the calling thread; `None` if the system does not provide it.
#[cfg(target_os = "linux")]
pub(super) fn current_thread() -> Option<ThreadId> {
    let path = std::fs::read_link("/proc/thread-self").ok()?;
    ThreadId::from_raw(path.file_name()?.to_str()?.parse().ok()?)
}

/// Lowers the priority of another thread, which must still exist, for the rest of its life.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority_of(thread: ThreadId) {
    log_failure(rustix::process::setpriority_process(Some(thread), NICENESS));
}

#[cfg(target_os = "linux")]
/// Logs a failure.
fn log_failure(outcome: rustix::io::Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "could not lower the priority of a background thread");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

#[cfg(not(target_os = "linux"))]
pub(super) type ThreadId = ();

#[cfg(not(target_os = "linux"))]
pub(super) fn current_thread() -> Option<ThreadId> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lower_priority_of(_: ThreadId) {}
