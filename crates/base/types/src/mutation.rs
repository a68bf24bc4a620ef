//! Mutations: rules that a simulation makes its thread violate, to prove that it detects the violation. Debug builds
//! only.

use std::cell::Cell;

/// A rule that the code violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// Rows changed or deleted during the flush of their layer are not deleted in the new shards.
    SettleForgetsLate,
    /// Rows changed or deleted during a compaction are not deleted in the new shards.
    CompactForgetsLate,
    /// Moves of rows by flushes and compactions are not remembered.
    MovesUnknown,
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
    OutcomeNotStored,
    /// A row is changed although another transaction has changed it since the statement read it.
    ChangesUnnoticed,
    /// Rolling back to a savepoint does not restore rows.
    SavepointKeepsRows,
    /// An object is written before its upload is announced durably.
    UploadNotAnnounced,
    /// Objects that a snapshot needs are deleted.
    CleaningIgnoresSnapshots,
    /// Uploaded objects that are not committed yet are deleted.
    CleaningIgnoresUploads,
    /// Objects are deleted before the commits that dereference them are archived.
    GarbageBeforeLog,
    /// Log records are marked as archived before they are.
    CopiedTooEarly,
    /// A checkpoint claims to contain records that were written after it.
    CheckpointClaimsMore,
    /// The archived log before the newest checkpoint is deleted regardless of the retention.
    LogPrunedTooEarly,
    /// A restored warehouse continues the timeline that it was restored from.
    RestoreKeepsTimeline,
    /// A start does not compare its log with the archived log.
    StartIgnoresStorage,
    /// A restore does not check the chain of record checksums.
    HistoryNotChained,
}

impl Mutation {
    /// All mutations.
    pub const ALL: [Mutation; 21] = [
        Mutation::SettleForgetsLate,
        Mutation::CompactForgetsLate,
        Mutation::MovesUnknown,
        Mutation::NoTombstone,
        Mutation::DeletesNotStored,
        Mutation::NoRowLocks,
        Mutation::NoKeyLocks,
        Mutation::NoTokenLocks,
        Mutation::OutcomeNotStored,
        Mutation::ChangesUnnoticed,
        Mutation::SavepointKeepsRows,
        Mutation::UploadNotAnnounced,
        Mutation::CleaningIgnoresSnapshots,
        Mutation::CleaningIgnoresUploads,
        Mutation::GarbageBeforeLog,
        Mutation::CopiedTooEarly,
        Mutation::CheckpointClaimsMore,
        Mutation::LogPrunedTooEarly,
        Mutation::RestoreKeepsTimeline,
        Mutation::StartIgnoresStorage,
        Mutation::HistoryNotChained,
    ];

    /// Whether this thread violates the rule.
    #[inline]
    #[must_use]
    pub fn is_on(self) -> bool {
        cfg!(debug_assertions) && ON.get() == Some(self)
    }

    /// Makes this thread violate the rule until the guard is dropped.
    #[must_use]
    pub fn switch_on(self) -> Mutated {
        ON.set(Some(self));
        Mutated
    }
}

/// Guard that ends a mutation when it is dropped.
#[derive(Debug)]
pub struct Mutated;

impl Drop for Mutated {
    fn drop(&mut self) {
        ON.set(None);
    }
}

thread_local! {
    static ON: Cell<Option<Mutation>> = const { Cell::new(None) };
}
