use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use super::*;

/// Waker that counts its wake-ups.
#[derive(Debug)]
struct Flag {
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
    fn new() -> Flag {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        Flag { count, waker }
    }

    fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    fn wakes(&self) -> usize {
        self.count.0.load(Ordering::SeqCst)
    }
}

#[test]
fn who_has_not_seen_the_newest_does_not_wait() {
    let revisions = Revisions::default();
    let flag = Flag::new();
    revisions.advance();
    revisions.advance();
    assert_eq!(pin!(revisions.after(0)).poll(&mut flag.context()), Poll::Ready(2));
    assert_eq!(pin!(revisions.after(1)).poll(&mut flag.context()), Poll::Ready(2));
    assert!(pin!(revisions.after(2)).poll(&mut flag.context()).is_pending());
}

#[test]
fn a_change_wakes_all_who_wait() {
    let revisions = Revisions::default();
    let (one, other) = (Flag::new(), Flag::new());
    let mut first = pin!(revisions.after(0));
    let mut second = pin!(revisions.after(0));
    assert!(first.as_mut().poll(&mut one.context()).is_pending());
    assert!(second.as_mut().poll(&mut other.context()).is_pending());
    assert_eq!(revisions.advance(), 1);
    assert_eq!((one.wakes(), other.wakes()), (1, 1));
    assert_eq!(first.poll(&mut one.context()), Poll::Ready(1));
    assert_eq!(second.poll(&mut other.context()), Poll::Ready(1));
}

#[test]
fn who_waits_no_longer_is_not_kept() {
    let revisions = Revisions::default();
    let flag = Flag::new();
    {
        let mut waits = pin!(revisions.after(0));
        for _ in 0..3 {
            assert!(waits.as_mut().poll(&mut flag.context()).is_pending());
        }
        assert_eq!(revisions.waiting.lock().wakers.len(), 1);
    }
    assert_eq!(revisions.waiting.lock().wakers.len(), 0);
    revisions.advance();
    assert_eq!(flag.wakes(), 0);
}
