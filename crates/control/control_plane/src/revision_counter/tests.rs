use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use super::*;

/// Waker that counts its wake-ups.
#[derive(Debug)]
struct CountingWaker {
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
    fn new() -> CountingWaker {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        CountingWaker { count, waker }
    }

    fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    fn wakes(&self) -> usize {
        self.count.0.load(Ordering::SeqCst)
    }
}

#[test]
fn an_old_revision_completes_immediately() {
    let revisions = Revisions::default();
    let flag = CountingWaker::new();
    revisions.advance();
    revisions.advance();
    assert_eq!(pin!(revisions.wait_for_newer(0)).poll(&mut flag.context()), Poll::Ready(2));
    assert_eq!(pin!(revisions.wait_for_newer(1)).poll(&mut flag.context()), Poll::Ready(2));
    assert!(pin!(revisions.wait_for_newer(2)).poll(&mut flag.context()).is_pending());
}

#[test]
fn a_change_wakes_all_waiters() {
    let revisions = Revisions::default();
    let (one, other) = (CountingWaker::new(), CountingWaker::new());
    let mut first = pin!(revisions.wait_for_newer(0));
    let mut second = pin!(revisions.wait_for_newer(0));
    assert!(first.as_mut().poll(&mut one.context()).is_pending());
    assert!(second.as_mut().poll(&mut other.context()).is_pending());
    assert_eq!(revisions.advance(), 1);
    assert_eq!((one.wakes(), other.wakes()), (1, 1));
    assert_eq!(first.poll(&mut one.context()), Poll::Ready(1));
    assert_eq!(second.poll(&mut other.context()), Poll::Ready(1));
}

#[test]
fn a_dropped_waiter_is_removed() {
    let revisions = Revisions::default();
    let flag = CountingWaker::new();
    {
        let mut waits = pin!(revisions.wait_for_newer(0));
        for _ in 0..3 {
            assert!(waits.as_mut().poll(&mut flag.context()).is_pending());
        }
        assert_eq!(revisions.state.lock().wakers.len(), 1);
    }
    assert_eq!(revisions.state.lock().wakers.len(), 0);
    revisions.advance();
    assert_eq!(flag.wakes(), 0);
}
