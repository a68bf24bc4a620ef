//! Memory for reading spilled partitions: a worker that has too little waits for others to give theirs back.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Workers that hold memory for partitions.
#[derive(Default)]
pub(super) struct Rooms {
    workers: Mutex<Workers>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Workers {
    /// Number of workers that hold memory and will give it back.
    busy: usize,
    /// Number of workers that hold memory and wait for more.
    waiting: usize,
}

/// Memory of one worker. Waiting workers are notified when it is released.
pub(super) struct Room {
    rooms: Arc<Rooms>,
    held: MemoryReservation,
    /// Bytes that stay when the hash table of a partition is dropped.
    kept: usize,
    standing: Standing,
}

/// State of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It holds no memory.
    Apart,
    Busy,
    Waiting,
}

impl Rooms {
    /// Returns an empty room for a worker, backed by `held`.
    pub(super) fn room(self: &Arc<Self>, held: MemoryReservation) -> Room {
        Room { rooms: Arc::clone(self), held, kept: 0, standing: Standing::Apart }
    }
}

impl Room {
    /// Grows to `bytes` beside what is kept. Waits for others if that is too much; `false` if no other worker will give
    /// anything back before this one continues with what it has.
    pub(super) async fn has(&mut self, bytes: usize) -> bool {
        let rooms = Arc::clone(&self.rooms);
        let wanted = self.kept + bytes;
        loop {
            let freed = rooms.freed.notified();
            tokio::pin!(freed);
            // Registered before the attempt, so that no notification is missed.
            freed.as_mut().enable();
            if wanted <= self.held.size() || self.held.try_resize(wanted).is_ok() {
                if wanted != 0 {
                    self.stand(Standing::Busy);
                }
                return true;
            }
            if !self.waits() {
                return false;
            }
            freed.await;
            if self.standing == Standing::Waiting {
                self.stand(Standing::Busy);
            }
        }
    }

    /// Grows by `bytes` that stay until [`clear`](Self::clear).
    pub(super) async fn keep(&mut self, bytes: usize) -> bool {
        let has = self.has(bytes).await;
        self.kept += if has { bytes } else { 0 };
        has
    }

    /// Gives back everything beyond `bytes` and what is kept.
    pub(super) fn shrink(&mut self, bytes: usize) {
        self.held.shrink(self.held.size().saturating_sub(self.kept + bytes));
        if self.held.size() == 0 {
            self.stand(Standing::Apart);
        }
        self.rooms.freed.notify_waiters();
    }

    /// Takes `bytes` beside what is kept, even beyond the limit: they are in use already.
    pub(super) fn resize(&mut self, bytes: usize) {
        self.held.resize(self.kept + bytes);
        self.stand(Standing::Busy);
        self.rooms.freed.notify_waiters();
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self) {
        self.kept = 0;
        self.shrink(0);
    }

    /// Returns whether to wait: another worker is active, or holds memory and will continue once this one waits too.
    fn waits(&mut self) -> bool {
        let mut workers = self.rooms.workers.lock();
        let is_busy = self.standing == Standing::Busy;
        let are_others_busy = workers.busy > usize::from(is_busy);
        if !are_others_busy && (self.standing != Standing::Apart || workers.waiting == 0) {
            return false;
        }
        if is_busy {
            workers.busy -= 1;
            workers.waiting += 1;
            self.standing = Standing::Waiting;
        }
        true
    }

    fn stand(&mut self, standing: Standing) {
        if standing == self.standing {
            return;
        }
        let mut workers = self.rooms.workers.lock();
        match self.standing {
            Standing::Apart => {}
            Standing::Busy => workers.busy -= 1,
            Standing::Waiting => workers.waiting -= 1,
        }
        match standing {
            Standing::Apart => {}
            Standing::Busy => workers.busy += 1,
            Standing::Waiting => workers.waiting += 1,
        }
        self.standing = standing;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use tokio::time::timeout;

    use super::*;
    use crate::memory::reservation;

    const SOON: Duration = Duration::from_millis(20);

    fn rooms(bytes: usize) -> impl Fn() -> Room {
        let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let rooms = Arc::new(Rooms::default());
        move || rooms.room(reservation(&memory))
    }

    #[tokio::test]
    async fn who_has_nothing_waits_for_one_that_makes_ready() {
        let room = rooms(100);
        let (mut first, mut second) = (room(), room());
        assert!(first.has(80).await);
        assert!(timeout(SOON, second.has(50)).await.is_err(), "the first will give it back");
        first.clear();
        assert!(second.has(50).await);
    }

    #[tokio::test]
    async fn of_two_that_want_more_one_goes_on_with_what_it_has() {
        let room = rooms(100);
        let (mut first, mut second) = (room(), room());
        assert!(first.has(50).await && second.has(50).await);
        let waiting = tokio::spawn(async move { (first.has(60).await, first) });
        tokio::task::yield_now().await;
        assert!(!second.has(60).await, "the first waits for this one");
        drop(second);
        let (has, first) = waiting.await.expect("the first goes on");
        assert!(has && first.held.size() == 60);
    }

    #[tokio::test]
    async fn one_that_has_nothing_waits_until_those_that_wait_have_gone_on() {
        let room = rooms(100);
        let (mut first, mut second, mut third) = (room(), room(), room());
        assert!(first.has(60).await && second.has(40).await);
        let waiting = tokio::spawn(async move { (first.has(70).await, first) });
        tokio::task::yield_now().await;
        let last = tokio::spawn(async move { third.has(80).await });
        tokio::task::yield_now().await;
        drop(second);
        let (has, first) = waiting.await.expect("the first goes on");
        assert!(has);
        drop(first);
        assert!(last.await.expect("the third goes on"));
    }

    #[tokio::test]
    async fn who_is_alone_is_told_at_once_and_what_it_keeps_is_its_own() {
        let room = rooms(100);
        let mut only = room();
        assert!(!only.has(101).await);
        assert!(only.keep(40).await && only.has(60).await && !only.has(61).await);
        only.shrink(0);
        assert_eq!(only.held.size(), 40);
        only.clear();
        assert_eq!((only.held.size(), only.rooms.workers.lock().busy), (0, 0));
    }

    #[tokio::test]
    async fn one_that_is_given_up_while_it_waits_counts_no_more() {
        let room = rooms(100);
        let (mut first, mut second) = (room(), room());
        assert!(first.has(50).await && second.has(50).await);
        assert!(timeout(SOON, first.has(60)).await.is_err());
        drop(first);
        assert!(second.has(100).await);
        assert_eq!(second.rooms.workers.lock().waiting, 0);
    }
}
