//! The trait that every key-value backend implements.

use std::fmt::Debug;
use std::ops::Bound;
use std::path::Path;

use bytes::Bytes;

use crate::key::prefix_end;
use crate::{Batch, Result, Space};

/// A key and its value.
pub type Entry = (Bytes, Bytes);

/// Iterator over entries in key order; it holds a snapshot of the store until it is dropped.
pub type Entries = Box<dyn Iterator<Item = Result<Entry>> + Send>;

/// An ordered key-value store with atomic, durable write batches across several key spaces.
///
/// Calls block on I/O: do not make them on async threads. Guarantees:
///
/// 1. Atomicity: a batch takes effect entirely or not at all.
/// 2. Durability: a batch whose write returned `Ok` survives any crash.
/// 3. Prefix consistency: after a crash the store contains a prefix of the sequence of batches.
/// 4. The first failed write poisons the handle: every later call fails with [`crate::Error::Poisoned`].
pub trait TxKv: Debug + Send + Sync + 'static {
    /// Applies `batch` atomically and returns once it is durable and visible. Writers are serialized.
    ///
    /// After [`crate::Error::Write`] the batch may or may not have taken effect, and the handle is poisoned.
    fn write(&self, batch: Batch) -> Result<()>;

    /// Returns the value of `key`; `None` if the key does not exist.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// Returns the values of `keys` in the order of `keys`, all read from one snapshot.
    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>>;

    /// Returns the entries of `range` in key order, from a snapshot taken by the call: later writes are not seen.
    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries>;

    /// Removes every key of `space` that starts with `prefix`, durably. It is not part of any batch: use it to clean up
    /// entries that no reader sees any more.
    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()>;

    /// Copies a snapshot of the store into a new file at `path`, which [`crate::redb::open`] can open. Reads and writes
    /// continue during the copy. A failure leaves no file behind and does not poison the handle.
    fn checkpoint(&self, path: &Path) -> Result<()>;

    /// Whether an earlier write failed. If so, the process must stop: the handle cannot be used any more.
    fn is_poisoned(&self) -> bool;
}

/// The key order in which a scan returns entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Forward,
    /// Largest key first.
    Reverse,
}

/// A range of keys, which are compared as byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub(crate) start: Bound<Bytes>,
    pub(crate) end: Bound<Bytes>,
}

impl KeyRange {
    /// Creates the range between two bounds.
    #[must_use]
    pub fn new(start: Bound<Bytes>, end: Bound<Bytes>) -> Self {
        Self { start, end }
    }

    /// Returns the range that contains every key.
    #[must_use]
    pub fn all() -> Self {
        Self::new(Bound::Unbounded, Bound::Unbounded)
    }

    /// Returns the range of the keys that start with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let end = prefix_end(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Bytes::from(end)));
        Self::new(Bound::Included(Bytes::copy_from_slice(prefix)), end)
    }

    /// Returns the range from `start`, inclusive, to `end`, exclusive.
    #[must_use]
    pub fn between(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self::new(Bound::Included(start.into()), Bound::Excluded(end.into()))
    }

    /// Returns the range from `start`, inclusive, to the last key.
    #[must_use]
    pub fn from(start: impl Into<Bytes>) -> Self {
        Self::new(Bound::Included(start.into()), Bound::Unbounded)
    }

    /// Returns the part of this range after `key`, which must lie in the range.
    #[must_use]
    pub fn after(self, key: Bytes) -> Self {
        Self { start: Bound::Excluded(key), ..self }
    }

    /// Whether no key can lie in the range, for example because its start is after its end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => end < start,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => end <= start,
            (Bound::Unbounded, Bound::Excluded(end)) => end.is_empty(),
            (_, Bound::Unbounded) | (Bound::Unbounded, Bound::Included(_)) => false,
        }
    }

    /// Returns the bounds as byte slices.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (as_slice(&self.start), as_slice(&self.end))
    }
}

fn as_slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}
