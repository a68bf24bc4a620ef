//! Waker for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

/// Waker that counts its wake-ups.
#[derive(Debug)]
pub(crate) struct CountingWaker {
    count: Arc<Count>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl CountingWaker {
    pub(crate) fn new() -> CountingWaker {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        CountingWaker { count, waker }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    pub(crate) fn wakes(&self) -> usize {
        self.count.0.load(Ordering::SeqCst)
    }
}
