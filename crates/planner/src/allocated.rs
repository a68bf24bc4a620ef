//! What a thread has allocated: noted by the program's allocator, read by who bounds a statement's memory.
//!
//! Numbers of the thread's own: to note one costs a few instructions.

use std::cell::Cell;

thread_local! {
    static ALLOCATED_BYTES: Cell<u64> = const { Cell::new(0) };
    static FREED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Notes a new block of so many bytes.
#[inline]
pub fn note_allocated(bytes: usize) {
    // A thread that ends notes nothing any more.
    let _ = ALLOCATED_BYTES.try_with(|noted| noted.set(noted.get().wrapping_add(bytes as u64)));
}

/// Notes that a block of so many bytes was freed, whoever allocated it.
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
