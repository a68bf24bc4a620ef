//! The transaction status of a session, as its client and others are told.

/// The transaction status between statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStatus {
    /// In no block.
    Idle,
    /// In a block.
    Open,
    /// In a block of which a statement has failed: only its end is heard.
    Failed,
}
