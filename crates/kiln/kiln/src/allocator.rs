//! Global allocator: mimalloc, called with an explicit alignment only where a layout needs more than the natural one.
//!
//! The crate `mimalloc` always passes the alignment, which takes a slow path for sizes that are not a power of two, and
//! most sizes here are not.

#![expect(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_option_set, mi_option_t, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use types::allocation_counters;

/// Natural alignment of blocks of at least this size (`MI_MAX_ALIGN_SIZE` in mimalloc's types.h); shorter blocks have
/// the alignment of a word.
const NATURAL_ALIGN_BYTES: usize = 16;

/// `mi_option_purge_delay` in mimalloc.h: milliseconds from the first free to the return of all free memory to the
/// system, including memory that was freed just before.
const PURGE_DELAY: mi_option_t = 15;
/// Longer than the default of a second, with which memory was returned and zeroed again between and during queries.
const PURGE_DELAY_MS: std::ffi::c_long = 10_000;

/// Global allocator of the program.
pub(crate) struct Allocator;

impl Allocator {
    /// Sets the purge delay, so that freed memory is reused by the next query.
    pub(crate) fn set_purge_delay() {
        // SAFETY: the call stores one number; a concurrent free reads either the old or the new one.
        unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) }
    }
}

/// Returns whether the natural alignment of blocks of this size suffices.
#[inline]
fn is_naturally_aligned(size: usize, align: usize) -> bool {
    align <= size_of::<usize>() || (align <= NATURAL_ALIGN_BYTES && NATURAL_ALIGN_BYTES <= size)
}

// SAFETY: each function forwards to mimalloc's corresponding function, and those satisfy the contract of an allocator.
// Blocks are aligned explicitly or by their natural alignment. A block may be freed or reallocated by the functions
// with and without alignment alike, because mimalloc finds the properties of a block by its address.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        allocation_counters::count_allocation(size);
        // SAFETY: a layout's alignment is a power of two, which is mimalloc's only requirement.
        unsafe {
            if is_naturally_aligned(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) }.cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        allocation_counters::count_allocation(size);
        // SAFETY: as in `alloc`.
        unsafe {
            if is_naturally_aligned(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) }.cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        allocation_counters::count_deallocation(layout.size());
        // SAFETY: the caller guarantees that the block was allocated here and is no longer used.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        allocation_counters::count_deallocation(layout.size());
        allocation_counters::count_allocation(size);
        // SAFETY: the caller guarantees that the block was allocated here; its content is kept up to the smaller size.
        unsafe {
            if is_naturally_aligned(size, align) {
                mi_realloc(block.cast(), size)
            } else {
                mi_realloc_aligned(block.cast(), size, align)
            }
            .cast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_size_are_aligned_zeroed_and_kept_when_they_move() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in [1, 3, 7, 8, 9, 12, 15, 16, 17, 24, 40, 100, 1000, 1024, 1025, 5000, 70_000, 3_000_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: blocks are accessed only within their size and before they are freed.
                unsafe {
                    let block = Allocator.alloc_zeroed(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{layout:?}");
                    assert!((0..size).all(|at| *block.add(at) == 0), "{layout:?}");
                    block.write_bytes(7, size);
                    for moved_size in [size * 3, size.div_ceil(2)] {
                        let other = Allocator.alloc(layout);
                        assert!(!other.is_null() && other.addr().is_multiple_of(align), "{layout:?}");
                        other.write_bytes(7, size);
                        let moved = Allocator.realloc(other, layout, moved_size);
                        assert!(!moved.is_null() && moved.addr().is_multiple_of(align), "{layout:?} to {moved_size}");
                        assert!((0..size.min(moved_size)).all(|at| *moved.add(at) == 7), "{layout:?} to {moved_size}");
                        Allocator.dealloc(moved, Layout::from_size_align(moved_size, align).unwrap());
                    }
                    Allocator.dealloc(block, layout);
                }
            }
        }
    }
}
