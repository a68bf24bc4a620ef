//! The contract every store fulfils.

use std::fmt::Debug;
use std::ops::Bound;
use std::path::Path;

use bytes::Bytes;

use crate::key::prefix_end;
use crate::{Batch, Result, Space};

/// A key and its value.
pub type Entry = (Bytes, Bytes);

/// Entries in key order; holds a snapshot of the store for as long as it lives.
pub type Entries = Box<dyn Iterator<Item = Result<Entry>> + Send>;

/// An ordered key-value store with atomic, durable writes over several spaces. Calls block on I/O; keep them off async threads.
///
/// 1. A batch is there as a whole or not at all.
/// 2. A batch whose write returned `Ok` survives any crash.
/// 3. After a crash the store holds a prefix of the sequence of batches.
/// 4. The first failed write poisons the handle: every later call is [`crate::Error::Poisoned`].
pub trait TxKv: Debug + Send + Sync + 'static {
    /// Makes all changes of `batch` durable and visible, or none. On an error of kind [`crate::Error::Write`] either may be
    /// the case, and the handle is poisoned. Writers take turns.
    fn write(&self, batch: Batch) -> Result<()>;

    /// The value of `key`.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values of `keys`, all of the same moment, in their order.
    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>>;

    /// The entries of `range` in key order, all of the moment of the call: later writes do not show.
    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries>;

    /// Removes every key of `space` that starts with `prefix`, durably. For cleaning up what nobody sees any more: it is no
    /// part of any batch.
    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()>;

    /// Copies the store as of one moment into a new file at `path`, which [`crate::redb::open`] opens. Reads and writes
    /// go on meanwhile. A failure leaves no file and does not poison the handle.
    fn checkpoint(&self, path: &Path) -> Result<()>;

    /// Whether an earlier write failed, so that the process has to stop.
    fn is_poisoned(&self) -> bool;
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Forward,
    /// Largest key first.
    Reverse,
}

/// A range of keys, compared as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub(crate) start: Bound<Bytes>,
    pub(crate) end: Bound<Bytes>,
}

impl KeyRange {
    /// From `start` to `end`.
    #[must_use]
    pub fn new(start: Bound<Bytes>, end: Bound<Bytes>) -> Self {
        Self { start, end }
    }

    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self::new(Bound::Unbounded, Bound::Unbounded)
    }

    /// Every key that starts with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let end = prefix_end(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Bytes::from(end)));
        Self::new(Bound::Included(Bytes::copy_from_slice(prefix)), end)
    }

    /// `start` and everything after it, up to and without `end`.
    #[must_use]
    pub fn between(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self::new(Bound::Included(start.into()), Bound::Excluded(end.into()))
    }

    /// `start` and everything after it.
    #[must_use]
    pub fn from(start: impl Into<Bytes>) -> Self {
        Self::new(Bound::Included(start.into()), Bound::Unbounded)
    }

    /// The part that follows `key`.
    #[must_use]
    pub fn after(self, key: Bytes) -> Self {
        Self { start: Bound::Excluded(key), ..self }
    }

    /// Whether no key can lie in the range, as when its start lies after its end.
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

    /// The bounds as slices.
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
