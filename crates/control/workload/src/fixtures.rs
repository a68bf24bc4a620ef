//! Waker for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

/// Waker that counts its wake-ups.
#[derive(Debug)]
pub(crate) struct Flag {
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

impl Flag {
    pub(crate) fn new() -> Flag {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        Flag { count, waker }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    pub(crate) fn wakes(&self) -> usize {
        self.count.0.load(Ordering::SeqCst)
    }
}
