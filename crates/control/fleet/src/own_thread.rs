//! A thread with a runtime of its own, for what has to answer in time however busy all others are.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The thread. Dropped, it ends with all that was spawned there.
pub(crate) struct OwnThread {
    runtime: Handle,
    _ends: DropGuard,
}

impl OwnThread {
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let ended = end.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || runtime.block_on(ended.cancelled()))?;
        Ok(Self { runtime: handle, _ends: end.drop_guard() })
    }

    /// Where to spawn.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl std::fmt::Debug for OwnThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnThread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_was_spawned_there_goes_on_beside_and_ends_with_it() {
        let own = OwnThread::start("own").expect("threads can be started");
        let (ask, asked) = std::sync::mpsc::channel();
        let task = own.runtime().spawn(async move {
            ask.send(std::thread::current().name().map(str::to_owned)).expect("it is waited for");
            let (held, never) = oneshot::channel::<()>();
            let _ = never.await;
            drop(held);
        });
        // This thread waits without turning to its own tasks.
        assert_eq!(asked.recv().expect("it runs").as_deref(), Some("own"));
        drop(own);
        assert!(task.await.expect_err("it never ends by itself").is_cancelled());
    }
}
