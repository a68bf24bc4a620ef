//! What can be locked.

use std::sync::Arc;

use types::{Oid, RowId};

use super::mode::{KeyLock, LockMode, RowLock, TableLock};

/// What can be locked. 16 bytes, for a statement may lock a great many rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Table(Oid),
    /// A row of a table.
    Row(Oid, RowId),
    Key(Arc<KeyName>),
}

/// A key of an index or constraint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName {
    pub index: Oid,
    pub bytes: Box<[u8]>,
}

impl Resource {
    /// A key of an index or constraint.
    #[must_use]
    pub fn key(index: Oid, bytes: &[u8]) -> Resource {
        Resource::Key(Arc::new(KeyName { index, bytes: bytes.into() }))
    }

    /// The modes whose bits are set.
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

    /// The mode of a request's one bit.
    pub(super) fn mode(&self, bit: u8) -> LockMode {
        self.modes(bit).next().expect("a request has its bit")
    }
}
