//! What becomes of a temporary table at each commit.

use serde::{Deserialize, Serialize};

/// What ON COMMIT of a temporary table says.
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
