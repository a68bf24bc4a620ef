//! Transaction status of a session, as ReadyForQuery and `pg_stat_activity` report it.

/// Transaction status of a session between statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStatus {
    /// Outside of a transaction block.
    Idle,
    /// In a transaction block.
    Open,
    /// In a failed transaction block: only its end or a rollback to a savepoint is accepted.
    Failed,
}
