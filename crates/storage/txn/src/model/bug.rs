//! Rules of the protocol that the model can omit.

/// Omitted rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OmittedRule {
    /// Rows that were changed or deleted during the flush of their layer are not deleted in its shards.
    SettleForgetsLate,
    /// Rows that were deleted during a compaction are not deleted in its shards.
    CompactForgetsLate,
    /// Rows that were deleted during a compaction are deleted at their old positions in the new shard.
    CompactKeepsPlaces,
    /// A flush adds its shards in one durable write and removes the layer in the next.
    SettleInTwoWrites,
    /// A layer is flushed although the table was emptied meanwhile.
    SettleIgnoresGeneration,
    /// Shards are replaced although they no longer exist.
    CompactIgnoresRemoval,
    /// Deleting a row of the sealed layer leaves no tombstone in the store.
    NoTombstone,
    /// Rows hidden by a transaction are not located anew at its commit.
    NoBinding,
    /// Rows hidden by a transaction are located after the flush, but not after a later compaction.
    BindingStopsAtSettling,
    /// Moves are forgotten although a transaction may still need them.
    MovesForgottenEarly,
    /// Moves are followed that are newer than the snapshot.
    MovesOfTheFuture,
    /// A transaction's rows are committed although the table was emptied meanwhile.
    TruncateUnnoticed,
    /// Two transactions may change the same row.
    NoRowLocks,
    /// A row is changed although another transaction has changed it since the snapshot.
    ChangesUnnoticed,
    /// A row that was changed and flushed since the snapshot counts as unchanged.
    VersionIgnored,
    /// A row that was changed and flushed since the snapshot counts as deleted.
    SettledTakenForDeleted,
    /// A change uses the row's newest position instead of the one in the transaction's snapshot.
    PlaceOfAnotherSnapshot,
    /// A rollback to a savepoint restores rows bound to outdated positions.
    SavepointNotBound,
    /// Objects are deleted that a snapshot needs.
    CleaningIgnoresSnapshots,
    /// Objects are deleted that are announced and about to be committed.
    CleaningIgnoresUploads,
    /// A transaction's own version of a row does not hide the committed one.
    OwnRowsDoNotHide,
    /// A changed row does not hide its version in the sealed layer.
    SealedNotHidden,
    /// The reads of a serializable transaction are not validated at its commit.
    ReadsNotValidated,
    /// Rows that were fresh when they were read are assumed not to be flushed since.
    FreshReadsStay,
    /// Moves of rows are not recorded among the writes.
    MovesNotNoted,
    /// Writes are recorded with the positions in the writer's snapshot instead of those at its commit.
    WritesNotedUnbound,
}

impl OmittedRule {
    pub(super) const ALL: [OmittedRule; 26] = [
        OmittedRule::SettleForgetsLate,
        OmittedRule::CompactForgetsLate,
        OmittedRule::CompactKeepsPlaces,
        OmittedRule::SettleInTwoWrites,
        OmittedRule::SettleIgnoresGeneration,
        OmittedRule::CompactIgnoresRemoval,
        OmittedRule::NoTombstone,
        OmittedRule::NoBinding,
        OmittedRule::BindingStopsAtSettling,
        OmittedRule::MovesForgottenEarly,
        OmittedRule::MovesOfTheFuture,
        OmittedRule::TruncateUnnoticed,
        OmittedRule::NoRowLocks,
        OmittedRule::ChangesUnnoticed,
        OmittedRule::VersionIgnored,
        OmittedRule::SettledTakenForDeleted,
        OmittedRule::PlaceOfAnotherSnapshot,
        OmittedRule::SavepointNotBound,
        OmittedRule::CleaningIgnoresSnapshots,
        OmittedRule::CleaningIgnoresUploads,
        OmittedRule::OwnRowsDoNotHide,
        OmittedRule::SealedNotHidden,
        OmittedRule::ReadsNotValidated,
        OmittedRule::FreshReadsStay,
        OmittedRule::MovesNotNoted,
        OmittedRule::WritesNotedUnbound,
    ];
}
