//! One version of a row.

use bytes::Bytes;
use types::{CommitTs, Oid};

use crate::Tuple;

/// A row as one commit left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The commit that wrote it; [`Row::UNCOMMITTED`] in a transaction's own layer.
    pub ts: CommitTs,
    pub tuple: Tuple,
    /// Its entry in each index of the table.
    pub keys: Box<[(Oid, IndexEntry)]>,
}

/// The indexed values in the form of `key.rs`, then the row's id in big-endian: entries order by value, then by row.
pub type IndexEntry = Bytes;

impl Row {
    /// Not a commit yet.
    pub const UNCOMMITTED: CommitTs = CommitTs(u64::MAX);

    /// What it takes in memory, roughly, with its place in the maps that hold it.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        const PER_ROW: usize = 96;
        const PER_KEY: usize = 112;
        let keys: usize = self.keys.iter().map(|(_, entry)| PER_KEY + entry.len()).sum();
        (PER_ROW + self.tuple.as_bytes().len() + keys) as u64
    }
}
