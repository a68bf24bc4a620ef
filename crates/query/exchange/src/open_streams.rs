//! Counts the open row streams of a query on a worker. Finished tasks, which the library retains for a while, do not
//! count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of open streams of a run's tasks.
#[derive(Debug, Default)]
pub(super) struct OpenStreams(AtomicUsize);

/// Guard of an open stream.
#[derive(Debug)]
pub(super) struct OpenStreamGuard(Arc<OpenStreams>);

impl OpenStreams {
    /// Counts one more stream until the returned guard is dropped.
    pub(super) fn open(self: &Arc<Self>) -> OpenStreamGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenStreamGuard(Arc::clone(self))
    }

    /// Returns whether any stream is open.
    pub(super) fn is_any_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Drop for OpenStreamGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_active_until_its_last_stream_is_dropped() {
        let active = Arc::<OpenStreams>::default();
        assert!(!active.is_any_open());
        let (first, second) = (active.open(), active.open());
        drop(first);
        assert!(active.is_any_open());
        drop(second);
        assert!(!active.is_any_open());
    }
}
