//! Whether a session is in a transaction block, as its client and others are told.

/// How a session stands between its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStatus {
    /// In no block.
    Idle,
    /// In a block.
    Open,
    /// In a block of which a statement has failed: only its end is heard.
    Failed,
}
