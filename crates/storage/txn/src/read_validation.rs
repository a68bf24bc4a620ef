//! Validation of serializable transactions: their read sets, and the writes of others since they began.
//!
//! A serializable transaction that writes must, at its commit, still read what it read at its beginning. It therefore
//! records its reads, and the committer records the writes of all commits as long as a serializable transaction runs.
//! The two are compared once, in commit order (backward validation, Härder 1984). A transaction that writes nothing is
//! serializable at its beginning.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use catalog::Change;
use parking_lot::Mutex;
use rowstore::UncommittedRows;
use types::{CommitTs, Oid, RowId, ShardId};

#[cfg(test)]
mod tests;

/// Key reads recorded per transaction; beyond this number their tables count as read completely.
const KEY_READS_MAX: usize = 10_000;

/// Read of a key range of an index, and its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRead {
    pub table: Oid,
    pub index: Oid,
    /// First key of the range, inclusive; `to_key` is exclusive.
    pub from_key: Vec<u8>,
    pub to_key: Vec<u8>,
    /// The rows that were found.
    pub rows: HashSet<RowId>,
    /// Positions of those rows that lay in shards.
    pub positions: HashSet<(ShardId, u32)>,
}

/// Read set of a transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadSet {
    tables: BTreeSet<Oid>,
    keys: Vec<KeyRead>,
}

/// Writes that were committed while serializable transactions ran.
#[derive(Debug, Default)]
pub(crate) struct WriteLog {
    /// Number of running serializable transactions.
    serializable_count: AtomicUsize,
    writes: Mutex<Vec<TableWrite>>,
}

/// Write of a commit to one table.
#[derive(Debug)]
struct TableWrite {
    commit: CommitTs,
    table: Oid,
    kind: WriteKind,
}

#[derive(Debug)]
enum WriteKind {
    Rows(UncommittedRows),
    /// Changes that are not tracked by row.
    Untracked,
    /// Rows moved between shards, or from fresh rows to shards.
    RowsMoved,
}

impl ReadSet {
    pub(crate) fn add_table(&mut self, table: Oid) {
        self.tables.insert(table);
    }

    pub(crate) fn add_key(&mut self, read: KeyRead) {
        if self.keys.len() == KEY_READS_MAX {
            self.tables.extend(self.keys.drain(..).map(|read| read.table));
        }
        if !self.tables.contains(&read.table) {
            self.keys.push(read);
        }
    }

    /// Returns a table with a recorded read that one of the writes, given in commit order, has changed.
    fn first_table_changed_by<'a>(&self, written: impl Iterator<Item = &'a TableWrite>) -> Option<Oid> {
        let mut moved = BTreeSet::new();
        for TableWrite { table, kind: what, .. } in written {
            let is_changed = match what {
                WriteKind::RowsMoved => {
                    moved.insert(*table);
                    false
                }
                _ if self.tables.contains(table) => true,
                WriteKind::Untracked => self.keys.iter().any(|read| read.table == *table),
                WriteKind::Rows(own) => {
                    let of_table = self.keys.iter().filter(|read| read.table == *table);
                    let mut of_table = of_table.filter(|read| read.is_changed_by(own, moved.contains(table)));
                    of_table.next().is_some()
                }
            };
            if is_changed {
                return Some(*table);
            }
        }
        None
    }
}

impl KeyRead {
    fn is_changed_by(&self, own: &UncommittedRows, are_moved: bool) -> bool {
        let is_of_range = |key: &[u8]| self.from_key.as_slice() <= key && key < self.to_key.as_slice();
        let came = own.layer.rows().any(|(id, row)| {
            self.rows.contains(&id)
                || row.index_entries.iter().any(|(index, entry)| *index == self.index && is_of_range(entry))
        });
        let went = || own.layer.hidden().any(|id| self.rows.contains(&id));
        let went_from_shard = || {
            // After a move the recorded positions are outdated, and a fresh row may have become a row of a shard.
            let any = are_moved && !self.rows.is_empty() && !own.deleted_in_shards.is_empty();
            any || self.positions.iter().any(|(shard, ordinal)| {
                own.deleted_in_shards.get(shard).is_some_and(|deleted| deleted.contains(*ordinal))
            })
        };
        came || went() || went_from_shard()
    }
}

impl WriteLog {
    /// Registers a serializable transaction; must be called before it takes its snapshot.
    pub(crate) fn begin_reader(&self) {
        self.serializable_count.fetch_add(1, Ordering::SeqCst);
    }

    /// Unregisters a serializable transaction.
    pub(crate) fn end_reader(&self) {
        let mut kept = self.writes.lock();
        if self.serializable_count.fetch_sub(1, Ordering::SeqCst) == 1 {
            kept.clear();
        }
    }

    /// Records the writes of a commit; must be called before it is visible.
    pub(crate) fn record<'a>(
        &self,
        at: CommitTs,
        changes: &[Change],
        rows: impl Iterator<Item = (Oid, &'a UncommittedRows)>,
    ) {
        // Serializable transactions that begin from now on see this commit.
        if self.serializable_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut kept = self.writes.lock();
        for change in changes {
            let (table, what) = match change {
                Change::AddShards { table, .. } | Change::RemoveAllRows { table } | Change::DropTable(table) => {
                    (*table, WriteKind::Untracked)
                }
                Change::Flush { table, .. } | Change::CompactShards { table, .. } => (*table, WriteKind::RowsMoved),
                _ => continue,
            };
            kept.push(TableWrite { commit: at, table, kind: what });
        }
        kept.extend(rows.map(|(table, own)| TableWrite { commit: at, table, kind: WriteKind::Rows(own.clone()) }));
    }

    /// Returns a table with a recorded read that a commit after `since`, the transaction's snapshot, has changed.
    pub(crate) fn first_changed_table(&self, reads: &ReadSet, since: CommitTs) -> Option<Oid> {
        let kept = self.writes.lock();
        reads.first_table_changed_by(kept.iter().filter(|written| since < written.commit))
    }
}
