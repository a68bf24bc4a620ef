//! Memory of the whole program: mimalloc, asked for alignment only where the type needs more than all of its blocks have.
//!
//! The crate `mimalloc` always asks for it, which takes the slow way for sizes that are no power of two: most of ours.

#![expect(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_option_set, mi_option_t, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use types::allocated;

/// Blocks that are at least as long as this have this alignment without being asked for it (`MI_MAX_ALIGN_SIZE` in mimalloc's types.h),
/// shorter ones that of a word.
const NATURAL_ALIGN_BYTES: usize = 16;

/// `mi_option_purge_delay` in mimalloc.h: how many milliseconds after the first piece of memory was freed all free memory goes back to the
/// system, however young the other pieces are.
const PURGE_DELAY: mi_option_t = 15;
/// By default it is a second: queries that follow each other, or take longer, had their memory taken and cleared again.
const PURGE_DELAY_MS: std::ffi::c_long = 10_000;

pub(crate) struct Allocator;

impl Allocator {
    /// Keeps free memory for the next query, as long as one may soon come.
    pub(crate) fn keep_free_memory() {
        // SAFETY: it stores a number; whoever frees memory meanwhile reads the number before or after.
        unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) }
    }
}

/// Whether any block of the layout's size is aligned as it has to be.
#[inline]
fn is_natural(size: usize, align: usize) -> bool {
    align <= size_of::<usize>() || (align <= NATURAL_ALIGN_BYTES && NATURAL_ALIGN_BYTES <= size)
}

// SAFETY: each function gives what mimalloc's function of its name gives, which are those of an allocator; blocks are aligned because they were
// asked to be or are by nature; and one block may be freed or moved by either family of functions, since mimalloc knows its blocks by address.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        allocated::note_allocated(size);
        // SAFETY: a layout's alignment is a power of two; mimalloc asks nothing else.
        unsafe { if is_natural(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) }.cast() }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        allocated::note_allocated(size);
        // SAFETY: as in `alloc`.
        unsafe { if is_natural(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) }.cast() }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        allocated::note_freed(layout.size());
        // SAFETY: the caller says that the block came from here and is not used any more.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        allocated::note_freed(layout.size());
        allocated::note_allocated(size);
        // SAFETY: the caller says that the block came from here; what it holds is kept up to the smaller size.
        unsafe {
            if is_natural(size, align) {
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
                // SAFETY: blocks are used as long and as far as they were asked for.
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
