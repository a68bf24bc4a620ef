//! Transactions of several statements, each of which looks first and writes later.

use super::serializable_reads::Reads;
use super::table_rows::{OwnVersions, Position, ROWS, Rows, Versions};

/// Isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// Versions that a transaction has written, by row.
pub(super) type WrittenVersions = [Option<u8>; ROWS];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Transaction {
    pub(super) level: Level,
    pub(super) base: Rows,
    /// The true rows as of `base`.
    pub(super) truth: Versions,
    pub(super) own: OwnVersions,
    /// Number of moves when `own` was bound.
    pub(super) moved: u8,
    pub(super) written: WrittenVersions,
    pub(super) locks: u8,
    /// The oldest commit that rows of `own` were located at.
    pub(super) anchor: Option<u8>,
    /// The current statement's row, the position where it saw the row, and whether it deletes it.
    pub(super) pending_write: Option<(usize, Position, bool)>,
    pub(super) savepoint: Option<(OwnVersions, u8, WrittenVersions)>,
    pub(super) statements: u8,
    pub(super) reads: Reads,
}

impl Transaction {
    pub(super) fn new(level: Level, base: &Rows, truth: Versions) -> Transaction {
        Transaction {
            level,
            base: base.clone(),
            truth,
            own: OwnVersions::default(),
            moved: base.moved,
            written: WrittenVersions::default(),
            locks: 0,
            anchor: None,
            pending_write: None,
            savepoint: None,
            statements: 0,
            reads: Reads::default(),
        }
    }

    /// Returns whether all statements use the same snapshot.
    pub(super) fn is_repeatable(&self) -> bool {
        self.level != Level::ReadCommitted
    }

    /// Returns the rows that the transaction should see.
    pub(super) fn expected(&self) -> Versions {
        std::array::from_fn(|row| self.written[row].unwrap_or(self.truth[row]))
    }

    /// Returns the oldest commit whose moves the transaction may need.
    pub(super) fn horizon(&self) -> u8 {
        self.anchor.unwrap_or(self.base.ts).min(self.base.ts)
    }
}
