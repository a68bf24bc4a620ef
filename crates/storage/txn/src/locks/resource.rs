//! Lockable resources.

use std::sync::Arc;

use types::{Oid, RowId};

use super::mode::{KeyLock, LockMode, RowLock, TableLock};

/// Lockable resource. 16 bytes, since a statement may lock very many rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Table(Oid),
    /// A row of a table.
    Row(Oid, RowId),
    Key(Arc<LockedKey>),
}

/// Key of an index or constraint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockedKey {
    pub index: Oid,
    pub bytes: Box<[u8]>,
}

impl Resource {
    /// Creates the resource of a key of an index or constraint.
    #[must_use]
    pub fn key(index: Oid, bytes: &[u8]) -> Resource {
        Resource::Key(Arc::new(LockedKey { index, bytes: bytes.into() }))
    }

    /// Returns the modes whose bits are set.
    pub(super) fn modes(&self, bits: u8) -> impl Iterator<Item = LockMode> {
        (0..8_u8).filter(move |index| bits & (1 << index) != 0).map(|index| {
            let index = usize::from(index);
            match self {
                Resource::Table(_) => LockMode::Table(TableLock::ALL[index]),
                Resource::Row(..) => LockMode::Row(RowLock::ALL[index]),
                Resource::Key(_) => LockMode::Key(KeyLock::ALL[index]),
            }
        })
    }

    /// Returns the mode of a request's bit.
    pub(super) fn mode(&self, bit: u8) -> LockMode {
        self.modes(bit).next().expect("invariant of Request: exactly one bit is set")
    }
}
