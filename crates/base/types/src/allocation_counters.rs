//! Allocation counters: bytes that each thread allocates and frees, and bytes in large blocks of the process.
//!
//! The program's allocator updates the counters. [`crate::planning_memory`] reads those of a thread to limit the memory of
//! planning; code that creates large values checks the process's total with [`check_large_block_limit`].
//!
//! Thread counters are thread-local, so counting takes a few instructions without synchronization. They cannot give the
//! memory of the process, because blocks may be freed by other threads and threads end. That is counted for large
//! blocks only, whose allocation costs much more than the counting.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::{Condition, SqlError, SqlResult};

/// Minimum size of a block that counts for the process, in bytes. Large values and most memory of operators are in such
/// blocks.
const LARGE_BLOCK_MIN: usize = 4 << 10;

/// Number of counters over which threads are spread to avoid contention.
const STRIPE_COUNT: usize = 16;

/// A counter with its own pair of cache lines, because processors fetch lines in pairs.
#[repr(align(128))]
struct Stripe(AtomicI64);

/// Bytes in large blocks, as the sum of striped counters. A single counter may be negative, because other threads may
/// free the blocks.
struct StripedCounter([Stripe; STRIPE_COUNT]);

/// Bytes in large blocks of the process.
static LARGE_BLOCK_BYTES: StripedCounter = StripedCounter::new();

/// Limit of [`check_large_block_limit`] on the bytes in large blocks.
static LARGE_BLOCK_BYTES_MAX: AtomicI64 = AtomicI64::new(i64::MAX);

thread_local! {
    static ALLOCATED_BYTES: Cell<u64> = const { Cell::new(0) };
    static FREED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Counts an allocation of `bytes`.
#[inline]
pub fn count_allocation(bytes: usize) {
    // The counters of a thread that is ending may be destroyed already.
    let _ = ALLOCATED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
    if LARGE_BLOCK_MIN <= bytes {
        LARGE_BLOCK_BYTES.add(bytes.cast_signed());
    }
}

/// Counts a deallocation of `bytes` on this thread, whichever thread allocated them.
#[inline]
pub fn count_deallocation(bytes: usize) {
    let _ = FREED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
    if LARGE_BLOCK_MIN <= bytes {
        LARGE_BLOCK_BYTES.add(-bytes.cast_signed());
    }
}

thread_local! {
    /// Index of the thread's counter; `usize::MAX` if not assigned yet.
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl StripedCounter {
    const fn new() -> Self {
        Self([const { Stripe(AtomicI64::new(0)) }; STRIPE_COUNT])
    }

    fn add(&self, bytes: isize) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let stripe = STRIPE.try_with(|own| {
            if own.get() == usize::MAX {
                own.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPE_COUNT);
            }
            own.get()
        });
        // The index of a thread that is ending may be destroyed already.
        self.0[stripe.unwrap_or(0)].0.fetch_add(bytes as i64, Ordering::Relaxed);
    }

    fn sum(&self) -> i64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

/// Sets the limit of [`check_large_block_limit`] on the bytes in large blocks of the process.
pub fn set_large_block_limit(bytes: usize) {
    LARGE_BLOCK_BYTES_MAX.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
}

/// Checks whether the process may allocate `bytes` more.
///
/// # Errors
/// `53200` if it would exceed its limit.
pub fn check_large_block_limit(bytes: usize) -> SqlResult<()> {
    let (held, most) = (LARGE_BLOCK_BYTES.sum(), LARGE_BLOCK_BYTES_MAX.load(Ordering::Relaxed));
    if held.saturating_add_unsigned(bytes as u64) <= most {
        return Ok(());
    }
    Err(SqlError::new(Condition::OutOfMemory, "out of memory")
        .with_detail(format!(
            "The process uses {} MB of at most {} MB and cannot create more large values.",
            held >> 20,
            most >> 20
        ))
        .with_hint("Make shorter values or fewer at a time, or give the server more memory (--memory-mb)."))
}

/// Returns the bytes that this thread has allocated so far; 0 if the program's allocator does not count.
#[must_use]
pub fn thread_allocated_bytes() -> u64 {
    ALLOCATED_BYTES.get()
}

/// Returns the allocated minus the freed bytes of this thread.
pub(crate) fn thread_bytes() -> i64 {
    ALLOCATED_BYTES.get().wrapping_sub(FREED_BYTES.get()).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Other tests allocate concurrently, so the process's counters cannot be tested here.
    #[test]
    fn what_one_thread_allocates_another_may_free() {
        let held = StripedCounter::new();
        held.add(1 << 30);
        assert_eq!(held.sum(), 1 << 30);
        std::thread::scope(|scope| {
            scope.spawn(|| held.add(-(1 << 30)));
        });
        assert_eq!(held.sum(), 0);
    }

    #[test]
    fn without_a_limit_there_is_room_for_anything() {
        assert_eq!(check_large_block_limit(1 << 40), Ok(()));
    }
}
