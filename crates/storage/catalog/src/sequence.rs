//! Definitions of sequences. The current position of a sequence is not part of the catalog, as it is not transactional.

use serde::{Deserialize, Serialize};
use types::{ColumnId, Oid, SqlType};

/// Sequence definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    pub oid: Oid,
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    /// `Int2`, `Int4` or `Int8`.
    pub sql_type: SqlType,
    /// First value after RESTART without a value.
    pub start: i64,
    /// Step between values; not zero.
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycle: bool,
    /// The column that the sequence belongs to.
    pub owned_by: Option<SequenceOwner>,
    /// Id under which the values are counted. Each RESTART assigns a new one, so that a rollback restores the old
    /// counter.
    pub counter: Oid,
    /// First value of that counter.
    pub begins: i64,
    pub comment: Option<String>,
}

/// Current position of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePosition {
    /// The last value returned; before the first one, the value to be returned next.
    pub last_value: i64,
    pub is_called: bool,
    /// Number of values that can be returned without a durable write.
    pub prepaid: i64,
}

/// Column that owns a sequence, which is dropped with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceOwner {
    pub table: Oid,
    pub column: ColumnId,
}

impl Sequence {
    /// Number of columns that a sequence has as a relation: `last_value`, `log_cnt`, `is_called`.
    pub const COLUMNS: i32 = 3;

    /// Returns the value after `last`; `None` at the end of a sequence that does not cycle.
    #[must_use]
    pub fn after(&self, last: i64) -> Option<i64> {
        let next = last.checked_add(self.increment).filter(|next| (self.min..=self.max).contains(next));
        match next {
            Some(next) => Some(next),
            None if self.cycle => Some(if self.increment > 0 { self.min } else { self.max }),
            None => None,
        }
    }

    /// Returns whether a column of the table owns the sequence.
    #[must_use]
    pub fn is_owned_by(&self, table: Oid) -> bool {
        self.owned_by.is_some_and(|owner| owner.table == table)
    }
}
