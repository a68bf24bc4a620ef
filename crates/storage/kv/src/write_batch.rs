//! Write batches: the changes that one atomic write applies.

use bytes::Bytes;

use crate::{Error, Result, Space};

/// Maximum length of a key, in bytes. A key consists of a few ids and at most one user string, so a longer key is a bug
/// of the caller.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// Maximum length of a value, in bytes. Larger data belongs in object storage, with the object's name stored here.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum size of a batch as computed by [`Batch::encoded_bytes_max`], in bytes: just under 2 GiB, because a store with a
/// logical log writes each batch twice and one write is limited to 4 GiB.
pub const BATCH_BYTES_MAX: usize = 31 << 26;

/// Upper bound of the bytes that a change takes in addition to its key and value.
const OP_OVERHEAD_BYTES: usize = 16;

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets the key to the value.
    Put { space: Space, key: Bytes, value: Bytes },
    /// Removes the key, if it exists.
    Delete { space: Space, key: Bytes },
}

impl Op {
    /// Returns the size of the key and the value, in bytes.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key, .. } => key.len(),
        }
    }

    /// Returns the key space of the change.
    #[must_use]
    pub fn space(&self) -> Space {
        match self {
            Self::Put { space, .. } | Self::Delete { space, .. } => *space,
        }
    }
}

/// Changes in any key spaces that are applied atomically. If a key is changed several times, the last change wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    ops: Vec<Op>,
}

impl Batch {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a change that sets `key` to `value`.
    pub fn put(&mut self, space: Space, key: impl Into<Bytes>, value: impl Into<Bytes>) -> &mut Self {
        self.ops.push(Op::Put { space, key: key.into(), value: value.into() });
        self
    }

    /// Adds a change that removes `key`; the key need not exist.
    pub fn delete(&mut self, space: Space, key: impl Into<Bytes>) -> &mut Self {
        self.ops.push(Op::Delete { space, key: key.into() });
        self
    }

    /// Appends the changes of `other`.
    pub fn append(&mut self, other: Self) -> &mut Self {
        self.ops.extend(other.ops);
        self
    }

    /// Returns the changes in the order in which they were added.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    pub(crate) fn into_ops(self) -> Vec<Op> {
        self.ops
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Returns an upper bound of the encoded size of the changes, in bytes.
    #[must_use]
    pub fn encoded_bytes_max(&self) -> usize {
        self.ops.iter().map(|op| OP_OVERHEAD_BYTES + op.byte_count()).sum()
    }

    /// Checks that no key or value exceeds the limits of the backends. Backends call it before they write anything.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`].
    pub fn check_sizes(&self) -> Result<()> {
        for op in &self.ops {
            let (space, key_bytes, value_bytes) = match op {
                Op::Put { space, key, value } => (*space, key.len(), value.len()),
                Op::Delete { space, key } => (*space, key.len(), 0),
            };
            if KEY_BYTES_MAX < key_bytes {
                return Err(Error::KeyTooLong { space, bytes: key_bytes });
            }
            if VALUE_BYTES_MAX < value_bytes {
                return Err(Error::ValueTooLong { space, bytes: value_bytes });
            }
        }
        Ok(())
    }

    /// Returns the changes stably sorted by space, so that a backend opens each space once.
    pub(crate) fn sorted_by_space(&self) -> Vec<&Op> {
        let mut ops: Vec<&Op> = self.ops.iter().collect();
        ops.sort_by_key(|op| op.space());
        ops
    }
}
