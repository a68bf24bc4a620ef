//! What serializable transactions have read, and whether others have changed it since.
//!
//! A serializable transaction that writes has to read at its commit what it read at its beginning. So it keeps what it asked for, and the
//! committer keeps what was written since, as long as there is such a transaction: the set is asked once, in the order of commits
//! (backward validation, Härder 1984). One that writes nothing is serializable at its beginning.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use catalog::Change;
use parking_lot::Mutex;
use rowstore::OwnRows;
use types::{CommitTs, Oid, RowId, ShardId};

#[cfg(test)]
mod tests;

/// Reads by key that are kept one by one; after so many of a transaction their tables count as read whole.
const KEY_READS_MAX: usize = 10_000;

/// What was asked of an index, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRead {
    pub table: Oid,
    pub index: Oid,
    /// The keys from `from` on and before `to`.
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    /// The rows that had them.
    pub rows: HashSet<RowId>,
    /// Where those of shards lay.
    pub places: HashSet<(ShardId, u32)>,
}

/// What a transaction has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadSet {
    tables: BTreeSet<Oid>,
    keys: Vec<KeyRead>,
}

/// What was written while serializable transactions ran.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// Serializable transactions that run.
    readers: AtomicUsize,
    kept: Mutex<Vec<Written>>,
}

/// What a commit wrote to a table.
#[derive(Debug)]
struct Written {
    at: CommitTs,
    table: Oid,
    what: What,
}

#[derive(Debug)]
enum What {
    Rows(OwnRows),
    /// More than is looked at row by row.
    Anything,
    /// Its settled rows went to other places.
    Moved,
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

    /// The table of which something was read that `written`, in the order of commits, has changed.
    fn changed_by<'a>(&self, written: impl Iterator<Item = &'a Written>) -> Option<Oid> {
        let mut moved = BTreeSet::new();
        for Written { table, what, .. } in written {
            let is_changed = match what {
                What::Moved => {
                    moved.insert(*table);
                    false
                }
                _ if self.tables.contains(table) => true,
                What::Anything => self.keys.iter().any(|read| read.table == *table),
                What::Rows(own) => {
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
    fn is_changed_by(&self, own: &OwnRows, are_moved: bool) -> bool {
        let is_of_range = |key: &[u8]| self.from.as_slice() <= key && key < self.to.as_slice();
        let came = own.layer.rows().any(|(id, row)| {
            self.rows.contains(&id) || row.keys.iter().any(|(index, entry)| *index == self.index && is_of_range(entry))
        });
        let went = || own.layer.gone().any(|id| self.rows.contains(&id));
        let went_from_shard = || {
            // Where they lie now is not where they were found, and who was fresh may be in a shard.
            let any = are_moved && !self.rows.is_empty() && !own.deleted.is_empty();
            any || self
                .places
                .iter()
                .any(|(shard, ordinal)| own.deleted.get(shard).is_some_and(|deleted| deleted.contains(*ordinal)))
        };
        came || went() || went_from_shard()
    }
}

impl Writes {
    /// A serializable transaction begins; to be called before it looks at what is committed.
    pub(crate) fn begin(&self) {
        self.readers.fetch_add(1, Ordering::SeqCst);
    }

    /// One has ended.
    pub(crate) fn end(&self) {
        let mut kept = self.kept.lock();
        if self.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            kept.clear();
        }
    }

    /// Takes note of what a commit does, before it is visible.
    pub(crate) fn note<'a>(&self, at: CommitTs, changes: &[Change], rows: impl Iterator<Item = (Oid, &'a OwnRows)>) {
        // Whoever begins from now on sees this commit.
        if self.readers.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut kept = self.kept.lock();
        for change in changes {
            let (table, what) = match change {
                Change::AddShards { table, .. } | Change::RemoveAllRows { table } | Change::DropTable(table) => {
                    (*table, What::Anything)
                }
                Change::Settle { table, .. } | Change::Compact { table, .. } => (*table, What::Moved),
                _ => continue,
            };
            kept.push(Written { at, table, what });
        }
        kept.extend(rows.map(|(table, own)| Written { at, table, what: What::Rows(own.clone()) }));
    }

    /// The table of which something was read by a transaction that began at `since` and has been changed by now.
    pub(crate) fn changed(&self, reads: &ReadSet, since: CommitTs) -> Option<Oid> {
        let kept = self.kept.lock();
        reads.changed_by(kept.iter().filter(|written| since < written.at))
    }
}
