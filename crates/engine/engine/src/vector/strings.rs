//! The distinct strings that codes stand for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, StringViewArray};

/// Strings by their codes. Two batches whose `Arc`s of it are one share its codes, whose meaning may be remembered by `id`.
#[derive(Debug)]
pub struct Strings {
    id: u64,
    values: StringViewArray,
}

impl Strings {
    /// The strings of an array without NULLs, each by its position.
    #[must_use]
    pub fn new(values: StringViewArray) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        debug_assert_eq!(values.null_count(), 0, "a NULL has no code");
        Arc::new(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), values })
    }

    /// A number that no other strings of this process have.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The strings, in the order of their codes.
    #[must_use]
    pub fn values(&self) -> &StringViewArray {
        &self.values
    }

    /// The string of a code.
    ///
    /// # Panics
    /// Where there is no such code.
    #[must_use]
    pub fn get(&self, code: u32) -> &str {
        self.values.value(code as usize)
    }
}
