//! Counts the bytes that each thread allocates and frees. The program's allocator counts; [`crate::interrupt`] reads the counts to bound the
//! memory of planning.
//!
//! The counters are thread-local, so that counting costs a few instructions and no synchronization.

use std::cell::Cell;

thread_local! {
    static ALLOCATED_BYTES: Cell<u64> = const { Cell::new(0) };
    static FREED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Counts an allocation of `bytes`.
#[inline]
pub fn note_allocated(bytes: usize) {
    // A thread that is ending has no counters any more.
    let _ = ALLOCATED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
}

/// Counts a deallocation of `bytes` on this thread, whichever thread allocated them.
#[inline]
pub fn note_freed(bytes: usize) {
    let _ = FREED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
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
