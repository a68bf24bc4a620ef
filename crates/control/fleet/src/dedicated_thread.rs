//! A dedicated thread with its own runtime, for tasks that must respond in time while all other threads are busy.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Thread with a single-threaded runtime. Dropping it ends the thread and all tasks that were spawned on it.
pub(crate) struct DedicatedThread {
    runtime: Handle,
    _shutdown: DropGuard,
}

impl DedicatedThread {
    /// Starts a thread of this name.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let ended = end.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || runtime.block_on(ended.cancelled()))?;
        Ok(Self { runtime: handle, _shutdown: end.drop_guard() })
    }

    /// Returns the handle for spawning tasks on the thread.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl std::fmt::Debug for DedicatedThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DedicatedThread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn tasks_run_on_the_thread_and_end_with_it() {
        let own = DedicatedThread::start("own").expect("start a thread");
        let (ask, asked) = std::sync::mpsc::channel();
        let task = own.runtime().spawn(async move {
            ask.send(std::thread::current().name().map(str::to_owned)).expect("the receiver waits");
            let (held, never) = oneshot::channel::<()>();
            let _ = never.await;
            drop(held);
        });
        // The blocking wait keeps this thread's runtime from running anything.
        assert_eq!(asked.recv().expect("the task runs").as_deref(), Some("own"));
        drop(own);
        assert!(task.await.expect_err("the task is cancelled").is_cancelled());
    }
}
