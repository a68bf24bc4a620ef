//! Index entries, small enough to be stored inline in the nodes of the index's tree.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use types::RowId;

#[cfg(test)]
mod tests;

/// Index entry: the key (see `key_encoding.rs`) followed by the row's id in big-endian. Entries sort by key, then by row
/// id.
///
/// Most entries are short and stored inline: they are compared and copied without a pointer or a reference count.
#[derive(Clone)]
pub struct IndexEntry(EntryBytes);

/// Maximum length of an inline entry, in bytes. A key of four integers with the row's id has 44 bytes.
const INLINE_BYTES_MAX: usize = 46;

#[derive(Clone)]
enum EntryBytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Heap(Arc<[u8]>),
}

const _: () = assert!(size_of::<IndexEntry>() == 48, "IndexEntry must have 48 bytes");

impl IndexEntry {
    /// Creates the entry of a row with this key.
    #[must_use]
    pub fn new(key: &[u8], row: RowId) -> Self {
        let id = row.0.to_be_bytes();
        let len = key.len() + id.len();
        match u8::try_from(len) {
            Ok(short) if len <= INLINE_BYTES_MAX => {
                let mut bytes = [0; INLINE_BYTES_MAX];
                bytes[..key.len()].copy_from_slice(key);
                bytes[key.len()..len].copy_from_slice(&id);
                Self(EntryBytes::Inline { len: short, bytes })
            }
            _ => Self(EntryBytes::Heap([key, &id].concat().into())),
        }
    }

    /// Returns the id of the row.
    #[must_use]
    pub fn row_id(&self) -> RowId {
        let id = self.last_chunk().expect("an index entry ends with its row's id");
        RowId(u64::from_be_bytes(*id))
    }

    /// Returns the key without the row's id.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self[..self.len() - size_of::<RowId>()]
    }

    /// Returns the heap memory of the entry, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            EntryBytes::Inline { .. } => 0,
            EntryBytes::Heap(bytes) => bytes.len() + 2 * size_of::<usize>(),
        }
    }
}

impl Deref for IndexEntry {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            EntryBytes::Inline { len, bytes } => &bytes[..usize::from(*len).min(INLINE_BYTES_MAX)],
            EntryBytes::Heap(bytes) => bytes,
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
        write!(f, "{:?} of {:?}", self.key(), self.row_id())
    }
}
