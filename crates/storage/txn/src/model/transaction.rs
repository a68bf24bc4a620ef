//! A transaction of several statements, each of which looks first and writes later.

use super::reads::Reads;
use super::rows::{Own, Place, ROWS, Rows, Versions};

/// How transactions are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What a transaction has made of a row.
pub(super) type Written = [Option<u8>; ROWS];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Transaction {
    pub(super) level: Level,
    pub(super) base: Rows,
    /// The truth as of `base`.
    pub(super) truth: Versions,
    pub(super) own: Own,
    /// How often rows had moved when `own` was bound.
    pub(super) moved: u8,
    pub(super) written: Written,
    pub(super) locks: u8,
    /// The commit at which `own` began.
    pub(super) anchor: Option<u8>,
    /// What the statement under way is about to do: a row, where it saw it, and whether it deletes it.
    pub(super) looked: Option<(usize, Place, bool)>,
    pub(super) savepoint: Option<(Own, u8, Written)>,
    pub(super) statements: u8,
    pub(super) reads: Reads,
}

impl Transaction {
    pub(super) fn new(level: Level, base: &Rows, truth: Versions) -> Transaction {
        Transaction {
            level,
            base: base.clone(),
            truth,
            own: Own::default(),
            moved: base.moved,
            written: Written::default(),
            locks: 0,
            anchor: None,
            looked: None,
            savepoint: None,
            statements: 0,
            reads: Reads::default(),
        }
    }

    /// Whether all of its statements see the same.
    pub(super) fn is_repeatable(&self) -> bool {
        self.level != Level::ReadCommitted
    }

    /// What it should see.
    pub(super) fn expected(&self) -> Versions {
        std::array::from_fn(|row| self.written[row].unwrap_or(self.truth[row]))
    }

    /// The oldest commit whose moves it may ask for.
    pub(super) fn horizon(&self) -> u8 {
        self.anchor.unwrap_or(self.base.ts).min(self.base.ts)
    }
}
