//! Rules of the protocol that the model can omit.

/// Omitted rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OmittedRule {
    /// Rows that were changed or deleted during the flush of their layer are not deleted in its shards.
    FlushIgnoresLaterDeletes,
    /// Rows that were deleted during a compaction are not deleted in its shards.
    CompactionIgnoresLaterDeletes,
    /// Rows that were deleted during a compaction are deleted at their old positions in the new shard.
    CompactionKeepsOldPositions,
    /// A flush adds its shards in one durable write and removes the layer in the next.
    FlushInTwoWrites,
    /// A layer is flushed although the table was emptied meanwhile.
    FlushIgnoresGeneration,
    /// Shards are replaced although they no longer exist.
    CompactionIgnoresRemovedShards,
    /// Deleting a row of the sealed layer leaves no tombstone in the store.
    NoTombstone,
    /// Rows hidden by a transaction are not located anew at its commit.
    OwnRowsNotRebound,
    /// Rows hidden by a transaction are located after the flush, but not after a later compaction.
    RebindingStopsAtFlush,
    /// Moves are forgotten although a transaction may still need them.
    MovesForgottenEarly,
    /// Moves are followed that are newer than the snapshot.
    MovesAfterSnapshotFollowed,
    /// A transaction's rows are committed although the table was emptied meanwhile.
    TruncateNotDetected,
    /// Two transactions may change the same row.
    NoRowLocks,
    /// A row is changed although another transaction has changed it since the snapshot.
    ConcurrentChangesNotDetected,
    /// A row that was changed and flushed since the snapshot counts as unchanged.
    FlushedVersionIgnored,
    /// A row that was changed and flushed since the snapshot counts as deleted.
    FlushedRowTakenForDeleted,
    /// A change uses the row's newest position instead of the one in the transaction's snapshot.
    PositionOfNewestSnapshotUsed,
    /// A rollback to a savepoint restores rows bound to outdated positions.
    SavepointRowsNotRebound,
    /// Objects are deleted that a snapshot needs.
    CleaningIgnoresSnapshots,
    /// Objects are deleted that are announced and about to be committed.
    CleaningIgnoresUploads,
    /// A transaction's own version of a row does not hide the committed one.
    OwnRowsDoNotHideCommitted,
    /// A changed row does not hide its version in the sealed layer.
    SealedVersionNotHidden,
    /// The reads of a serializable transaction are not validated at its commit.
    ReadsNotValidated,
    /// Rows that were fresh when they were read are assumed not to be flushed since.
    FreshReadsAssumedUnflushed,
    /// Moves of rows are not recorded among the writes.
    MovesNotRecorded,
    /// Writes are recorded with the positions in the writer's snapshot instead of those at its commit.
    WritesRecordedAtOldPositions,
}

impl OmittedRule {
    pub(super) const ALL: [OmittedRule; 26] = [
        OmittedRule::FlushIgnoresLaterDeletes,
        OmittedRule::CompactionIgnoresLaterDeletes,
        OmittedRule::CompactionKeepsOldPositions,
        OmittedRule::FlushInTwoWrites,
        OmittedRule::FlushIgnoresGeneration,
        OmittedRule::CompactionIgnoresRemovedShards,
        OmittedRule::NoTombstone,
        OmittedRule::OwnRowsNotRebound,
        OmittedRule::RebindingStopsAtFlush,
        OmittedRule::MovesForgottenEarly,
        OmittedRule::MovesAfterSnapshotFollowed,
        OmittedRule::TruncateNotDetected,
        OmittedRule::NoRowLocks,
        OmittedRule::ConcurrentChangesNotDetected,
        OmittedRule::FlushedVersionIgnored,
        OmittedRule::FlushedRowTakenForDeleted,
        OmittedRule::PositionOfNewestSnapshotUsed,
        OmittedRule::SavepointRowsNotRebound,
        OmittedRule::CleaningIgnoresSnapshots,
        OmittedRule::CleaningIgnoresUploads,
        OmittedRule::OwnRowsDoNotHideCommitted,
        OmittedRule::SealedVersionNotHidden,
        OmittedRule::ReadsNotValidated,
        OmittedRule::FreshReadsAssumedUnflushed,
        OmittedRule::MovesNotRecorded,
        OmittedRule::WritesRecordedAtOldPositions,
    ];
}
