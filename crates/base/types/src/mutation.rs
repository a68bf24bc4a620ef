//! Rules that a simulation lets the code forget on its own thread, to prove that it would notice. A release build forgets none.

use std::cell::Cell;

/// A rule that is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// Rows that were changed or deleted while their layer settled are not deleted in its shards.
    SettleForgetsLate,
    /// The same of compaction.
    CompactForgetsLate,
    /// Nobody remembers how rows moved.
    MovesUnknown,
    /// A deleted row of the sealed layer leaves nothing in the store.
    NoTombstone,
    /// Deleted rows of shards are not written to the store.
    DeletesNotStored,
    /// Two transactions may change one row.
    NoRowLocks,
    /// Two transactions may add one key.
    NoKeyLocks,
    /// Two transactions may have one token.
    NoTokenLocks,
    /// What a client is told of a commit by its token is not in the commit.
    OutcomeNotStored,
    /// A row is changed though another transaction has changed it since the statement saw it.
    ChangesUnnoticed,
    /// Rows come back from a savepoint as they were last.
    SavepointKeepsRows,
    /// An object is written before it is known, durably, that it will be.
    UploadNotAnnounced,
    /// Objects are deleted that a snapshot needs.
    CleaningIgnoresSnapshots,
    /// Objects are deleted that are on their way into the catalog.
    CleaningIgnoresUploads,
    /// Objects are deleted before the storage knows of the commits that let go of them.
    GarbageBeforeLog,
    /// Records of the log count as copied before they are.
    CopiedTooEarly,
    /// A checkpoint is said to contain records after it.
    CheckpointClaimsMore,
    /// The log before the newest checkpoint is removed, whatever the retention.
    LogPrunedTooEarly,
    /// A restored warehouse goes on in the timeline that it was restored from.
    RestoreKeepsTimeline,
    /// A start does not compare its log with the storage's.
    StartIgnoresStorage,
    /// A restore does not look whether records follow each other.
    HistoryNotChained,
}

impl Mutation {
    /// All of them.
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

    /// Whether the rule is forgotten on this thread.
    #[inline]
    #[must_use]
    pub fn is_on(self) -> bool {
        cfg!(debug_assertions) && ON.get() == Some(self)
    }

    /// Lets this thread forget the rule until the guard is dropped.
    #[must_use]
    pub fn switch_on(self) -> Mutated {
        ON.set(Some(self));
        Mutated
    }
}

/// Ends a mutation when it is dropped.
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
