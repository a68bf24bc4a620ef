//! A worker's share of the process's memory: those who can spill have equal parts of it, and it may change while they run.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use parking_lot::Mutex;

/// A pool over the one of the process. Where its limit becomes less than what is taken, nothing is taken back, and nobody gets more.
#[derive(Debug)]
pub struct WorkerMemory {
    all: Arc<dyn MemoryPool>,
    taken: Mutex<Taken>,
}

/// By whom memory is taken, as `DataFusion`'s fair pool counts it.
#[derive(Debug, Default)]
struct Taken {
    /// `None`: only the process's own.
    limit: Option<usize>,
    spillers: usize,
    spillable: usize,
    unspillable: usize,
}

impl Taken {
    /// What a consumer that can spill, or cannot, may have at most; what it has counts. `None` without a limit.
    fn may_have(&self, can_spill: bool, has: usize) -> Option<usize> {
        let limit = self.limit?;
        Some(if can_spill {
            limit.saturating_sub(self.unspillable) / self.spillers.max(1)
        } else {
            has + limit.saturating_sub(self.unspillable + self.spillable)
        })
    }

    fn of(&mut self, can_spill: bool) -> &mut usize {
        if can_spill { &mut self.spillable } else { &mut self.unspillable }
    }
}

impl WorkerMemory {
    /// At most `limit` bytes of what `all` has; `None`: as much as there is.
    #[must_use]
    pub fn new(all: Arc<dyn MemoryPool>, limit: Option<usize>) -> Arc<Self> {
        Arc::new(Self { all, taken: Mutex::new(Taken { limit, ..Taken::default() }) })
    }

    /// Sets the limit from now on.
    pub fn set_limit(&self, limit: Option<usize>) {
        self.taken.lock().limit = limit;
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn used(&self) -> usize {
        let taken = self.taken.lock();
        taken.spillable + taken.unspillable
    }
}

impl MemoryPool for WorkerMemory {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.taken.lock().spillers += 1;
        }
        self.all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.taken.lock().spillers -= 1;
        }
        self.all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.taken.lock().of(reservation.consumer().can_spill()) += additional;
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.taken.lock().of(reservation.consumer().can_spill()) -= shrink;
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        let can_spill = reservation.consumer().can_spill();
        {
            let mut taken = self.taken.lock();
            let has = reservation.size();
            if let Some(most) = taken.may_have(can_spill, has)
                && most < has.saturating_add(additional)
            {
                let name = reservation.consumer().name();
                let (wanted, has, most) =
                    (human_readable_size(additional), human_readable_size(has), human_readable_size(most));
                let message =
                    format!("{name} has {has}, wants {wanted} more, and may have {most} of its worker's memory");
                return Err(DataFusionError::ResourcesExhausted(message));
            }
            *taken.of(can_spill) += additional;
        }
        let all = self.all.try_grow(reservation, additional);
        all.inspect_err(|_| *self.taken.lock().of(can_spill) -= additional)
    }

    /// So that what is left of the limit is what can be taken.
    fn reserved(&self) -> usize {
        let (limit, used) = {
            let taken = self.taken.lock();
            (taken.limit, taken.spillable + taken.unspillable)
        };
        let (Some(limit), MemoryLimit::Finite(most)) = (limit, self.memory_limit()) else {
            return self.all.reserved();
        };
        let own_rest = limit.saturating_sub(used);
        let rest = match self.all.memory_limit() {
            MemoryLimit::Finite(all) => own_rest.min(all.saturating_sub(self.all.reserved())),
            _ => own_rest,
        };
        most.saturating_sub(rest)
    }

    fn memory_limit(&self) -> MemoryLimit {
        let limit = self.taken.lock().limit;
        match (limit, self.all.memory_limit()) {
            (Some(own), MemoryLimit::Finite(all)) => MemoryLimit::Finite(own.min(all)),
            (Some(own), _) => MemoryLimit::Finite(own),
            (None, all) => all,
        }
    }
}

impl fmt::Display for WorkerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker({}) of {}", human_readable_size(self.used()), self.all)
    }
}
