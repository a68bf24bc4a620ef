//! MATERIALIZED clauses of WITH queries, encoded in the relation names that the queries have in a plan.

use std::sync::atomic::{AtomicU64, Ordering};

/// `MATERIALIZED` clause of a WITH query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaterializeClause {
    /// `MATERIALIZED`: all rows are computed once, whatever readers need of them.
    Materialized,
    /// `NOT MATERIALIZED`: each reader computes the rows that it needs.
    NotMaterialized,
    /// No clause, in a statement in which another WITH query has one.
    Unspecified,
}

/// Separator between a query's name and its encoded clause; users never see it.
const CLAUSE_SEPARATOR: &str = "\u{1}with ";

/// Counter that makes the encoded names of equally named queries differ, for example those of two views.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl MaterializeClause {
    /// Returns a unique relation name that encodes the clause; `name` is the query's name in the statement.
    #[must_use]
    pub fn encode_name(self, name: &str) -> String {
        let word = match self {
            Self::Materialized => "once",
            Self::NotMaterialized => "each",
            Self::Unspecified => "any",
        };
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        format!("{name}{CLAUSE_SEPARATOR}{word} {number}")
    }

    /// Decodes the clause from a relation name; `None` for names without one.
    pub(super) fn decode(name: &str) -> Option<Self> {
        let (_, said) = name.split_once(CLAUSE_SEPARATOR)?;
        match said.split(' ').next() {
            Some("once") => Some(Self::Materialized),
            Some("each") => Some(Self::NotMaterialized),
            _ => Some(Self::Unspecified),
        }
    }
}

/// Returns the query's name as the statement has it, without the encoded clause.
pub(super) fn written_name(name: &str) -> &str {
    name.split_once(CLAUSE_SEPARATOR).map_or(name, |(written, _)| written)
}
