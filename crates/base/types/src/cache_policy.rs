//! Cache policies of tables.

use serde::{Deserialize, Serialize};

/// Policy of the column cache for a table: the value of its storage parameter `cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CachePolicy {
    /// Columns are cached according to how often they are read.
    #[default]
    Normal,
    /// Columns that were read stay cached and are not evicted for other tables.
    Pin,
    /// Columns are never cached.
    Never,
}

impl CachePolicy {
    const ALL: [Self; 3] = [Self::Pin, Self::Normal, Self::Never];

    /// Returns the parameter value of the policy.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Pin => "pin",
            Self::Never => "never",
        }
    }

    /// Returns the policy with this parameter value; `None` if there is none.
    #[must_use]
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == word)
    }

    /// Whether this is the default policy.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}
