//! Counts the bytes that each thread allocates and frees, and the large blocks of the process. The program's allocator counts;
//! [`crate::interrupt`] reads the counts to bound the memory of planning, and who makes large values asks whether there is room for them.
//!
//! The counters of threads are thread-local, so that counting costs a few instructions and no synchronization. Blocks may be freed by another thread
//! than the one that allocated them, and threads end: what the process holds is counted of large blocks alone, whose cost hides that of counting.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::{Condition, SqlError, SqlResult};

/// Blocks of at least this size are counted for the process: large values lie in such blocks, and most of what operators hold.
const LARGE_BYTES: usize = 4 << 10;

/// Threads that count at the same time rarely count in the same place.
const STRIPES: usize = 16;

/// On a cache line of its own, and beside the one that is fetched with it.
#[repr(align(128))]
struct Stripe(AtomicI64);

/// The bytes of all large blocks: the sum of these counters. One of them may be negative: another thread may free what its threads allocated.
struct HeldBytes([Stripe; STRIPES]);

/// Those of the process.
static LARGE_HELD: HeldBytes = HeldBytes::new();

/// The most that large blocks may hold when more values are to be made.
static LARGE_BYTES_MAX: AtomicI64 = AtomicI64::new(i64::MAX);

thread_local! {
    static ALLOCATED_BYTES: Cell<u64> = const { Cell::new(0) };
    static FREED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Counts an allocation of `bytes`.
#[inline]
pub fn note_allocated(bytes: usize) {
    // A thread that is ending has no counters any more.
    let _ = ALLOCATED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
    if LARGE_BYTES <= bytes {
        LARGE_HELD.add(bytes.cast_signed());
    }
}

/// Counts a deallocation of `bytes` on this thread, whichever thread allocated them.
#[inline]
pub fn note_freed(bytes: usize) {
    let _ = FREED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
    if LARGE_BYTES <= bytes {
        LARGE_HELD.add(-bytes.cast_signed());
    }
}

thread_local! {
    /// Which stripe is the thread's; none yet.
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl HeldBytes {
    const fn new() -> Self {
        Self([const { Stripe(AtomicI64::new(0)) }; STRIPES])
    }

    fn add(&self, bytes: isize) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let stripe = STRIPE.try_with(|own| {
            if own.get() == usize::MAX {
                own.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
            }
            own.get()
        });
        // A thread that is ending has none any more.
        self.0[stripe.unwrap_or(0)].0.fetch_add(bytes as i64, Ordering::Relaxed);
    }

    fn sum(&self) -> i64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

/// Has [`check_room`] refuse what would have the large blocks of the process hold more than `bytes`.
pub fn limit_large(bytes: usize) {
    LARGE_BYTES_MAX.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
}

/// Whether the process may hold `bytes` more.
///
/// # Errors
/// `53200` if not.
pub fn check_room(bytes: usize) -> SqlResult<()> {
    let (held, most) = (LARGE_HELD.sum(), LARGE_BYTES_MAX.load(Ordering::Relaxed));
    if held.saturating_add_unsigned(bytes as u64) <= most {
        return Ok(());
    }
    Err(SqlError::new(Condition::OutOfMemory, "out of memory")
        .with_detail(format!(
            "The process holds {} MB of at most {} MB, and large values are to be made.",
            held >> 20,
            most >> 20
        ))
        .with_hint("Make shorter values or fewer at a time, or give the server more memory (--memory-mb)."))
}

/// Bytes that this thread has allocated so far; 0 where the program's allocator notes nothing.
#[must_use]
pub fn allocated_bytes() -> u64 {
    ALLOCATED_BYTES.get()
}

/// Allocated less freed bytes of this thread.
pub(crate) fn held_bytes() -> i64 {
    ALLOCATED_BYTES.get().wrapping_sub(FREED_BYTES.get()).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Other tests allocate meanwhile, so that the counters of the process say nothing here.
    #[test]
    fn what_one_thread_allocates_another_may_free() {
        let held = HeldBytes::new();
        held.add(1 << 30);
        assert_eq!(held.sum(), 1 << 30);
        std::thread::scope(|scope| {
            scope.spawn(|| held.add(-(1 << 30)));
        });
        assert_eq!(held.sum(), 0);
    }

    #[test]
    fn without_a_limit_there_is_room_for_anything() {
        assert_eq!(check_room(1 << 40), Ok(()));
    }
}
