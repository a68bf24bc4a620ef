//! Sequences: what numbers they give. How far one has come is not the catalog's: that is changed by no transaction.

use serde::{Deserialize, Serialize};
use types::{ColumnId, Oid, SqlType};

/// A sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    pub oid: Oid,
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    /// `Int2`, `Int4` or `Int8`.
    pub sql_type: SqlType,
    /// Where RESTART without a number begins.
    pub start: i64,
    /// Not zero.
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycle: bool,
    /// The column that the sequence goes with.
    pub owned_by: Option<SequenceOwner>,
    /// Under which id its numbers are counted: another one after each RESTART, which a rollback takes back.
    pub counter: Oid,
    /// Where that count begins.
    pub begins: i64,
    pub comment: Option<String>,
}

/// How far a sequence has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePosition {
    /// The number given last; before the first one, the one to come.
    pub last_value: i64,
    pub is_called: bool,
    /// Numbers that can be given without a durable write.
    pub prepaid: i64,
}

/// The column that a sequence is dropped with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceOwner {
    pub table: Oid,
    pub column: ColumnId,
}

impl Sequence {
    /// A sequence is a relation of so many columns: `last_value`, `log_cnt`, `is_called`.
    pub const COLUMNS: i32 = 3;

    /// The number after `last`; `None` at the end of a sequence that does not cycle.
    #[must_use]
    pub fn after(&self, last: i64) -> Option<i64> {
        let next = last.checked_add(self.increment).filter(|next| (self.min..=self.max).contains(next));
        match next {
            Some(next) => Some(next),
            None if self.cycle => Some(if self.increment > 0 { self.min } else { self.max }),
            None => None,
        }
    }

    /// Whether the sequence goes with a column of that table.
    #[must_use]
    pub fn is_owned_by(&self, table: Oid) -> bool {
        self.owned_by.is_some_and(|owner| owner.table == table)
    }
}
