//! Injected bugs: rules that a simulation makes its thread violate, to prove that it detects the violation. Debug builds
//! only.

use std::cell::Cell;

/// A rule that the code violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedBug {
    /// Rows changed or deleted during the flush of their layer are not deleted in the new shards.
    FlushForgetsLateChanges,
    /// Rows changed or deleted during a compaction are not deleted in the new shards.
    CompactionForgetsLateChanges,
    /// Moves of rows by flushes and compactions are not remembered.
    RowMovesNotRecorded,
    /// A deleted row of the sealed layer leaves no tombstone in the store.
    NoTombstone,
    /// Deleted rows of shards are not written to the store.
    DeletesNotStored,
    /// Two transactions may change the same row concurrently.
    NoRowLocks,
    /// Two transactions may add the same key concurrently.
    NoKeyLocks,
    /// Two transactions may use the same statement token concurrently.
    NoTokenLocks,
    /// The outcome of a statement token is not written with the commit.
    TokenOutcomeNotStored,
    /// A row is changed although another transaction has changed it since the statement read it.
    NoWriteConflictCheck,
    /// Rolling back to a savepoint does not restore rows.
    RollbackToSavepointKeepsRows,
    /// An object is written before its upload is announced durably.
    UploadNotAnnounced,
    /// Objects that a snapshot needs are deleted.
    CleaningIgnoresSnapshots,
    /// Uploaded objects that are not committed yet are deleted.
    CleaningIgnoresUploads,
    /// Objects are deleted before the commits that dereference them are archived.
    CleaningIgnoresArchiving,
    /// Log records are marked as archived before they are.
    MarkedArchivedTooEarly,
    /// A checkpoint claims to contain records that were written after it.
    CheckpointClaimsLaterRecords,
    /// The archived log before the newest checkpoint is deleted regardless of the retention.
    LogPrunedTooEarly,
    /// A restored warehouse continues the timeline that it was restored from.
    RestoreKeepsTimeline,
    /// A start does not compare its log with the archived log.
    StartSkipsStorageCheck,
    /// A restore does not check the chain of record checksums.
    RestoreSkipsChecksumChain,
}

impl InjectedBug {
    /// All injected bugs.
    pub const ALL: [InjectedBug; 21] = [
        InjectedBug::FlushForgetsLateChanges,
        InjectedBug::CompactionForgetsLateChanges,
        InjectedBug::RowMovesNotRecorded,
        InjectedBug::NoTombstone,
        InjectedBug::DeletesNotStored,
        InjectedBug::NoRowLocks,
        InjectedBug::NoKeyLocks,
        InjectedBug::NoTokenLocks,
        InjectedBug::TokenOutcomeNotStored,
        InjectedBug::NoWriteConflictCheck,
        InjectedBug::RollbackToSavepointKeepsRows,
        InjectedBug::UploadNotAnnounced,
        InjectedBug::CleaningIgnoresSnapshots,
        InjectedBug::CleaningIgnoresUploads,
        InjectedBug::CleaningIgnoresArchiving,
        InjectedBug::MarkedArchivedTooEarly,
        InjectedBug::CheckpointClaimsLaterRecords,
        InjectedBug::LogPrunedTooEarly,
        InjectedBug::RestoreKeepsTimeline,
        InjectedBug::StartSkipsStorageCheck,
        InjectedBug::RestoreSkipsChecksumChain,
    ];

    /// Whether this thread violates the rule.
    #[inline]
    #[must_use]
    pub fn is_active(self) -> bool {
        cfg!(debug_assertions) && ACTIVE.get() == Some(self)
    }

    /// Makes this thread violate the rule until the guard is dropped.
    #[must_use]
    pub fn activate(self) -> InjectedBugGuard {
        ACTIVE.set(Some(self));
        InjectedBugGuard
    }
}

/// Guard that ends an injected bug when it is dropped.
#[derive(Debug)]
pub struct InjectedBugGuard;

impl Drop for InjectedBugGuard {
    fn drop(&mut self) {
        ACTIVE.set(None);
    }
}

thread_local! {
    static ACTIVE: Cell<Option<InjectedBug>> = const { Cell::new(None) };
}
