//! Memory for reading spilled partitions: a worker that has too little waits for others to give theirs back.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Workers that hold memory for partitions.
#[derive(Default)]
pub(super) struct SharedMemory {
    workers: Mutex<WorkerCounts>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct WorkerCounts {
    /// Number of workers that hold memory and will give it back.
    busy: usize,
    /// Number of workers that hold memory and wait for more.
    waiting: usize,
}

/// Memory of one worker. Waiting workers are notified when it is released.
pub(super) struct PartitionMemory {
    shared_memory: Arc<SharedMemory>,
    reservation: MemoryReservation,
    /// Bytes that stay when the hash table of a partition is dropped.
    lasting_bytes: usize,
    state: WorkerState,
}

/// State of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    /// It holds no memory.
    Idle,
    Busy,
    Waiting,
}

impl SharedMemory {
    /// Returns an empty room for a worker, backed by `held`.
    pub(super) fn new_member(self: &Arc<Self>, held: MemoryReservation) -> PartitionMemory {
        PartitionMemory {
            shared_memory: Arc::clone(self),
            reservation: held,
            lasting_bytes: 0,
            state: WorkerState::Idle,
        }
    }
}

impl PartitionMemory {
    /// Grows to `bytes` beside what is kept. Waits for others if that is too much; `false` if no other worker will give
    /// anything back before this one continues with what it has.
    pub(super) async fn reserve(&mut self, bytes: usize) -> bool {
        let rooms = Arc::clone(&self.shared_memory);
        let wanted = self.lasting_bytes + bytes;
        loop {
            let freed = rooms.freed.notified();
            tokio::pin!(freed);
            // Registered before the attempt, so that no notification is missed.
            freed.as_mut().enable();
            if wanted <= self.reservation.size() || self.reservation.try_resize(wanted).is_ok() {
                if wanted != 0 {
                    self.set_state(WorkerState::Busy);
                }
                return true;
            }
            if !self.begin_wait() {
                return false;
            }
            freed.await;
            if self.state == WorkerState::Waiting {
                self.set_state(WorkerState::Busy);
            }
        }
    }

    /// Grows by `bytes` that stay until [`clear`](Self::clear).
    pub(super) async fn reserve_lasting(&mut self, bytes: usize) -> bool {
        let has = self.reserve(bytes).await;
        self.lasting_bytes += if has { bytes } else { 0 };
        has
    }

    /// Gives back everything beyond `bytes` and what is kept.
    pub(super) fn shrink(&mut self, bytes: usize) {
        self.reservation.shrink(self.reservation.size().saturating_sub(self.lasting_bytes + bytes));
        if self.reservation.size() == 0 {
            self.set_state(WorkerState::Idle);
        }
        self.shared_memory.freed.notify_waiters();
    }

    /// Takes `bytes` beside what is kept, even beyond the limit: they are in use already.
    pub(super) fn resize(&mut self, bytes: usize) {
        self.reservation.resize(self.lasting_bytes + bytes);
        self.set_state(WorkerState::Busy);
        self.shared_memory.freed.notify_waiters();
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self) {
        self.lasting_bytes = 0;
        self.shrink(0);
    }

    /// Returns whether to wait: another worker is active, or holds memory and will continue once this one waits too.
    fn begin_wait(&mut self) -> bool {
        let mut workers = self.shared_memory.workers.lock();
        let is_busy = self.state == WorkerState::Busy;
        let are_others_busy = workers.busy > usize::from(is_busy);
        if !are_others_busy && (self.state != WorkerState::Idle || workers.waiting == 0) {
            return false;
        }
        if is_busy {
            workers.busy -= 1;
            workers.waiting += 1;
            self.state = WorkerState::Waiting;
        }
        true
    }

    fn set_state(&mut self, standing: WorkerState) {
        if standing == self.state {
            return;
        }
        let mut workers = self.shared_memory.workers.lock();
        match self.state {
            WorkerState::Idle => {}
            WorkerState::Busy => workers.busy -= 1,
            WorkerState::Waiting => workers.waiting -= 1,
        }
        match standing {
            WorkerState::Idle => {}
            WorkerState::Busy => workers.busy += 1,
            WorkerState::Waiting => workers.waiting += 1,
        }
        self.state = standing;
    }
}

impl Drop for PartitionMemory {
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
    use crate::memory_accounting::reservation;

    const SOON: Duration = Duration::from_millis(20);

    fn rooms(bytes: usize) -> impl Fn() -> PartitionMemory {
        let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let rooms = Arc::new(SharedMemory::default());
        move || rooms.new_member(reservation(&memory))
    }

    #[tokio::test]
    async fn who_has_nothing_waits_for_one_that_makes_ready() {
        let room = rooms(100);
        let (mut first, mut second) = (room(), room());
        assert!(first.reserve(80).await);
        assert!(timeout(SOON, second.reserve(50)).await.is_err(), "the first will give it back");
        first.clear();
        assert!(second.reserve(50).await);
    }

    #[tokio::test]
    async fn of_two_that_want_more_one_goes_on_with_what_it_has() {
        let room = rooms(100);
        let (mut first, mut second) = (room(), room());
        assert!(first.reserve(50).await && second.reserve(50).await);
        let waiting = tokio::spawn(async move { (first.reserve(60).await, first) });
        tokio::task::yield_now().await;
        assert!(!second.reserve(60).await, "the first waits for this one");
        drop(second);
        let (has, first) = waiting.await.expect("the first goes on");
        assert!(has && first.reservation.size() == 60);
    }

    #[tokio::test]
    async fn one_that_has_nothing_waits_until_those_that_wait_have_gone_on() {
        let room = rooms(100);
        let (mut first, mut second, mut third) = (room(), room(), room());
        assert!(first.reserve(60).await && second.reserve(40).await);
        let waiting = tokio::spawn(async move { (first.reserve(70).await, first) });
        tokio::task::yield_now().await;
        let last = tokio::spawn(async move { third.reserve(80).await });
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
        assert!(!only.reserve(101).await);
        assert!(only.reserve_lasting(40).await && only.reserve(60).await && !only.reserve(61).await);
        only.shrink(0);
        assert_eq!(only.reservation.size(), 40);
        only.clear();
        assert_eq!((only.reservation.size(), only.shared_memory.workers.lock().busy), (0, 0));
    }

    #[tokio::test]
    async fn one_that_is_given_up_while_it_waits_counts_no_more() {
        let room = rooms(100);
        let (mut first, mut second) = (room(), room());
        assert!(first.reserve(50).await && second.reserve(50).await);
        assert!(timeout(SOON, first.reserve(60)).await.is_err());
        drop(first);
        assert!(second.reserve(100).await);
        assert_eq!(second.shared_memory.workers.lock().waiting, 0);
    }
}
