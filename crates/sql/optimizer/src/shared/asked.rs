//! MATERIALIZED clauses of WITH queries, encoded in the relation names that the queries have in a plan.

use std::sync::atomic::{AtomicU64, Ordering};

/// `MATERIALIZED` clause of a WITH query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `MATERIALIZED`: all rows are computed once, whatever readers need of them.
    Once,
    /// `NOT MATERIALIZED`: each reader computes the rows that it needs.
    ByEach,
    /// No clause, in a statement in which another WITH query has one.
    Nothing,
}

/// Separator between a query's name and its encoded clause; users never see it.
const MARK: &str = "\u{1}with ";

/// Counter that makes the encoded names of equally named queries differ, for example those of two views.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Asked {
    /// Returns a unique relation name that encodes the clause; `name` is the query's name in the statement.
    #[must_use]
    pub fn name(self, name: &str) -> String {
        let word = match self {
            Self::Once => "once",
            Self::ByEach => "each",
            Self::Nothing => "any",
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("{name}{MARK}{word} {number}")
    }

    /// Decodes the clause from a relation name; `None` for names without one.
    pub(super) fn of(name: &str) -> Option<Self> {
        let (_, said) = name.split_once(MARK)?;
        match said.split(' ').next() {
            Some("once") => Some(Self::Once),
            Some("each") => Some(Self::ByEach),
            _ => Some(Self::Nothing),
        }
    }
}

/// Returns the query's name as the statement has it, without the encoded clause.
pub(super) fn written(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(written, _)| written)
}
