//! Dictionaries of distinct strings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, StringViewArray};

/// Dictionary: strings by their index. Columns that share the same `Arc` share their indices, so that results per
/// entry can be cached by `id`.
#[derive(Debug)]
pub struct Dictionary {
    id: u64,
    values: StringViewArray,
}

impl Dictionary {
    /// Creates a dictionary from an array without NULLs; positions are the indices.
    #[must_use]
    pub fn new(values: StringViewArray) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        debug_assert_eq!(values.null_count(), 0, "dictionary entries must not be NULL");
        Arc::new(Self { id: NEXT.fetch_add(1, Ordering::Relaxed), values })
    }

    /// Returns an id that is unique among the dictionaries of this process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of dictionary entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether the dictionary has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the entries in the order of their indices.
    #[must_use]
    pub fn values(&self) -> &StringViewArray {
        &self.values
    }

    /// Returns the string at an index.
    ///
    /// # Panics
    /// Panics if the index is out of range.
    #[must_use]
    pub fn get(&self, code: u32) -> &str {
        self.values.value(code as usize)
    }
}
