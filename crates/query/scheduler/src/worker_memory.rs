//! Memory pool of a worker within that of the process, with a limit that may change at any time.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use parking_lot::Mutex;

/// Memory pool of a worker. If its limit drops below what is reserved, nothing is taken back, but no more is granted.
#[derive(Debug)]
pub struct WorkerMemory {
    parent: Arc<dyn MemoryPool>,
    reserved: Mutex<ReservedBytes>,
}

/// Reserved memory, by kind of consumer, as in DataFusion's `FairSpillPool`.
#[derive(Debug, Default)]
struct ReservedBytes {
    /// Limit in bytes; `None` leaves only that of the process.
    limit: Option<usize>,
    /// Number of registered consumers that can spill.
    spillers: usize,
    /// Bytes reserved by consumers that can spill.
    spillable: usize,
    /// Bytes reserved by the others.
    unspillable: usize,
}

impl ReservedBytes {
    /// Returns how much a consumer may have in total, given what it `has`; `None` without a limit.
    fn max_for(&self, can_spill: bool, has: usize) -> Option<usize> {
        let limit = self.limit?;
        Some(if can_spill {
            limit.saturating_sub(self.unspillable) / self.spillers.max(1)
        } else {
            has + limit.saturating_sub(self.unspillable + self.spillable)
        })
    }

    /// Returns the counter for a kind of consumer.
    fn counter(&mut self, can_spill: bool) -> &mut usize {
        if can_spill { &mut self.spillable } else { &mut self.unspillable }
    }
}

impl WorkerMemory {
    /// Returns a pool of at most `limit` bytes within `all`; `None` is unlimited.
    #[must_use]
    pub fn new(all: Arc<dyn MemoryPool>, limit: Option<usize>) -> Arc<Self> {
        Arc::new(Self { parent: all, reserved: Mutex::new(ReservedBytes { limit, ..ReservedBytes::default() }) })
    }

    /// Changes the limit.
    pub fn set_limit(&self, limit: Option<usize>) {
        self.reserved.lock().limit = limit;
    }

    /// Returns the reserved bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        let taken = self.reserved.lock();
        taken.spillable + taken.unspillable
    }
}

impl MemoryPool for WorkerMemory {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.reserved.lock().spillers += 1;
        }
        self.parent.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.reserved.lock().spillers -= 1;
        }
        self.parent.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.reserved.lock().counter(reservation.consumer().can_spill()) += additional;
        self.parent.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.reserved.lock().counter(reservation.consumer().can_spill()) -= shrink;
        self.parent.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        let can_spill = reservation.consumer().can_spill();
        {
            let mut taken = self.reserved.lock();
            let has = reservation.size();
            if let Some(most) = taken.max_for(can_spill, has)
                && most < has.saturating_add(additional)
            {
                let name = reservation.consumer().name();
                let (wanted, has, most) =
                    (human_readable_size(additional), human_readable_size(has), human_readable_size(most));
                let message = format!("{name} has {has} and needs {wanted} more, but its worker allows it only {most}");
                return Err(DataFusionError::ResourcesExhausted(message));
            }
            *taken.counter(can_spill) += additional;
        }
        let all = self.parent.try_grow(reservation, additional);
        all.inspect_err(|_| *self.reserved.lock().counter(can_spill) -= additional)
    }

    /// Chosen so that limit minus reserved is what can still be reserved.
    fn reserved(&self) -> usize {
        let (limit, used) = {
            let taken = self.reserved.lock();
            (taken.limit, taken.spillable + taken.unspillable)
        };
        let (Some(limit), MemoryLimit::Finite(most)) = (limit, self.memory_limit()) else {
            return self.parent.reserved();
        };
        let own_rest = limit.saturating_sub(used);
        let rest = match self.parent.memory_limit() {
            MemoryLimit::Finite(all) => own_rest.min(all.saturating_sub(self.parent.reserved())),
            _ => own_rest,
        };
        most.saturating_sub(rest)
    }

    fn memory_limit(&self) -> MemoryLimit {
        let limit = self.reserved.lock().limit;
        match (limit, self.parent.memory_limit()) {
            (Some(own), MemoryLimit::Finite(all)) => MemoryLimit::Finite(own.min(all)),
            (Some(own), _) => MemoryLimit::Finite(own),
            (None, all) => all,
        }
    }
}

impl fmt::Display for WorkerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker({}) of {}", human_readable_size(self.used()), self.parent)
    }
}
