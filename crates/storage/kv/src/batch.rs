//! What one atomic write does.

use bytes::Bytes;

use crate::{Error, Result, Space};

/// Longest key, in bytes. A key holds a few ids and at most one user string; anything longer is a mistake of the caller.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// Longest value, in bytes. Larger things belong into object storage with their name stored here.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most bytes of a batch, as [`Batch::byte_count`] tells them: a store with a log writes them twice, and one write has at most 4 GiB.
pub const BATCH_BYTES_MAX: usize = 31 << 26;

/// What a change takes beside its key and value, at most.
const OP_BYTES: usize = 16;

/// One change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Put { space: Space, key: Bytes, value: Bytes },
    Delete { space: Space, key: Bytes },
}

impl Op {
    /// Size of its key and value.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key, .. } => key.len(),
        }
    }

    /// The space this change belongs to.
    #[must_use]
    pub fn space(&self) -> Space {
        match self {
            Self::Put { space, .. } | Self::Delete { space, .. } => *space,
        }
    }
}

/// Changes to any keys of any spaces that become durable together. Later changes of the same key win.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    ops: Vec<Op>,
}

impl Batch {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value`.
    pub fn put(&mut self, space: Space, key: impl Into<Bytes>, value: impl Into<Bytes>) -> &mut Self {
        self.ops.push(Op::Put { space, key: key.into(), value: value.into() });
        self
    }

    /// Removes `key`; one that is not there is fine.
    pub fn delete(&mut self, space: Space, key: impl Into<Bytes>) -> &mut Self {
        self.ops.push(Op::Delete { space, key: key.into() });
        self
    }

    /// Appends all changes of `other` after the ones here.
    pub fn append(&mut self, other: Self) -> &mut Self {
        self.ops.extend(other.ops);
        self
    }

    /// The changes in the order they were made.
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

    /// What its changes take where they are written.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.ops.iter().map(|op| OP_BYTES + op.byte_count()).sum()
    }

    /// Refuses keys and values no backend stores, before anything is written.
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

    /// The changes grouped by space, so that a backend opens each space once; within a space their order is kept.
    pub(crate) fn by_space(&self) -> Vec<&Op> {
        let mut ops: Vec<&Op> = self.ops.iter().collect();
        ops.sort_by_key(|op| op.space());
        ops
    }
}
