//! How much a table's columns are worth keeping.

use serde::{Deserialize, Serialize};

/// What the cache of columns does with those of a table: its parameter `cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CachePolicy {
    /// What is read often stays.
    #[default]
    Normal,
    /// What was read stays, whatever else is read.
    Pin,
    /// They are read around the cache.
    Never,
}

impl CachePolicy {
    const ALL: [Self; 3] = [Self::Pin, Self::Normal, Self::Never];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Pin => "pin",
            Self::Never => "never",
        }
    }

    /// The policy of this word, if there is one.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.word() == word)
    }

    /// Whether nothing was said.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}
