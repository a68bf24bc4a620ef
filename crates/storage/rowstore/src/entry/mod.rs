//! Entries of indexes, small enough to lie in the nodes of the tree that orders them.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use types::RowId;

#[cfg(test)]
mod tests;

/// The indexed values in the form of `key.rs`, then the row's id in big-endian: entries order by value, then by row.
///
/// Most are short: they are compared and copied where they lie, without a pointer to follow or a count to change.
#[derive(Clone)]
pub struct IndexEntry(Bytes);

/// Four integers and a row's id are 44 bytes; with its marks an entry is 48.
const SHORT_MAX: usize = 46;

#[derive(Clone)]
enum Bytes {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(Arc<[u8]>),
}

const _: () = assert!(size_of::<IndexEntry>() == 48, "an entry takes more room than it was made for");

impl IndexEntry {
    /// The entry of a row with this key.
    #[must_use]
    pub fn new(key: &[u8], row: RowId) -> Self {
        let id = row.0.to_be_bytes();
        let len = key.len() + id.len();
        match u8::try_from(len) {
            Ok(short) if len <= SHORT_MAX => {
                let mut bytes = [0; SHORT_MAX];
                bytes[..key.len()].copy_from_slice(key);
                bytes[key.len()..len].copy_from_slice(&id);
                Self(Bytes::Short { len: short, bytes })
            }
            _ => Self(Bytes::Long([key, &id].concat().into())),
        }
    }

    /// The row that it is of.
    #[must_use]
    pub fn row(&self) -> RowId {
        let id = self.last_chunk().expect("an entry ends with its row's id");
        RowId(u64::from_be_bytes(*id))
    }

    /// The indexed values, without the row.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self[..self.len() - size_of::<RowId>()]
    }

    /// What it takes in memory beside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Short { .. } => 0,
            Bytes::Long(bytes) => bytes.len() + 2 * size_of::<usize>(),
        }
    }
}

impl Deref for IndexEntry {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short { len, bytes } => &bytes[..usize::from(*len).min(SHORT_MAX)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for IndexEntry {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for IndexEntry {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for IndexEntry {}

impl PartialOrd for IndexEntry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IndexEntry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for IndexEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.key(), self.row())
    }
}
