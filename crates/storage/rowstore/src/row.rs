//! One version of a row.

use std::sync::Arc;

use types::{CommitTs, Oid};

use crate::{IndexEntry, Tuple};

/// A row as one commit left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The commit that wrote it; [`Row::UNCOMMITTED`] in a transaction's own layer.
    pub ts: CommitTs,
    pub tuple: Tuple,
    /// Its entry in each index of the table.
    pub keys: Arc<[(Oid, IndexEntry)]>,
}

impl Row {
    /// Not a commit yet.
    pub const UNCOMMITTED: CommitTs = CommitTs(u64::MAX);

    /// What it takes in memory, roughly, with its place in the maps that hold it.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        const PER_ROW: usize = 96;
        // In the row, and in the index's tree, whose nodes are not full.
        const PER_KEY: usize = 144;
        let keys: usize = self.keys.iter().map(|(_, entry)| PER_KEY + entry.heap_bytes()).sum();
        (PER_ROW + self.tuple.as_bytes().len() + keys) as u64
    }
}
