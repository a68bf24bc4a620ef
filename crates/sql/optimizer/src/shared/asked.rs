//! What a WITH query is asked to be, as its name in a plan says it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What `MATERIALIZED` asks of a WITH query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `MATERIALIZED`: its rows are computed once, whatever its readers take of them.
    Once,
    /// `NOT MATERIALIZED`: each reader computes what it takes.
    ByEach,
    /// Nothing, beside a query of which something is asked.
    Nothing,
}

/// Between a name and what is said of it; no user sees it.
const MARK: &str = "\u{1}with ";

/// Makes names differ between queries whose own are the same: those of two views.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Asked {
    /// A name that no other query has, and that says what is asked of this one.
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

    /// What the name of a query says; `None` for one that says nothing.
    pub(super) fn of(name: &str) -> Option<Self> {
        let (_, said) = name.split_once(MARK)?;
        match said.split(' ').next() {
            Some("once") => Some(Self::Once),
            Some("each") => Some(Self::ByEach),
            _ => Some(Self::Nothing),
        }
    }
}

/// The name as it was written.
pub(super) fn written(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(written, _)| written)
}
