//! The threads that run operators, apart from those that serve connections: a busy query never delays a cancel request.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// A runtime for operators.
pub(crate) struct Threads {
    /// `None` while dropped, and where tasks run on the runtime of whoever starts them.
    runtime: Option<Runtime>,
}

impl Threads {
    /// Starts `count` threads; with none, tasks run where they are started.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        if count == 0 {
            return Ok(Self { runtime: None });
        }
        let runtime = Builder::new_multi_thread().worker_threads(count).thread_name("query").enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs `task` on these threads until it ends or the handle is dropped.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        let handle = match &self.runtime {
            Some(runtime) => runtime.spawn(task),
            None => tokio::spawn(task),
        };
        AbortOnDropHandle::new(handle)
    }

    /// Tasks that have not ended.
    #[cfg(test)]
    pub(crate) fn alive(&self) -> usize {
        self.runtime.as_ref().expect("the runtime lives until the drop").metrics().num_alive_tasks()
    }
}

/// A runtime must not be waited for where it is dropped in the midst of asynchronous code.
impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
