//! Row versions.

use std::sync::Arc;

use types::{CommitTs, Oid};

use crate::{IndexEntry, Tuple};

/// A row version, as written by one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowVersion {
    /// Timestamp of the commit that wrote it; [`RowVersion::UNCOMMITTED`] in a transaction's own layer.
    pub commit_ts: CommitTs,
    /// The row's values.
    pub tuple: Tuple,
    /// Entries of the row in the table's indexes, by the id of the index.
    pub index_entries: Arc<[(Oid, IndexEntry)]>,
}

impl RowVersion {
    /// Timestamp of rows that are not committed.
    pub const UNCOMMITTED: CommitTs = CommitTs(u64::MAX);

    /// Returns the approximate memory of the row, including its entries in maps and indexes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        const OVERHEAD_BYTES_PER_ROW: usize = 96;
        // One copy in the row and one in the index's tree, whose nodes are partly empty.
        const OVERHEAD_BYTES_PER_INDEX_ENTRY: usize = 144;
        let keys: usize =
            self.index_entries.iter().map(|(_, entry)| OVERHEAD_BYTES_PER_INDEX_ENTRY + entry.heap_bytes()).sum();
        (OVERHEAD_BYTES_PER_ROW + self.tuple.as_bytes().len() + keys) as u64
    }
}
