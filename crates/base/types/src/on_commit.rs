//! ON COMMIT clause of temporary tables.

use serde::{Deserialize, Serialize};

/// Action on a temporary table at each commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum OnCommit {
    /// The rows stay until the session ends.
    #[default]
    PreserveRows,
    /// The table is emptied.
    DeleteRows,
    /// The table is dropped.
    Drop,
}
