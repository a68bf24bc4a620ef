//! Rules of the protocol, each taken away.

/// A rule that is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// Rows that were changed or deleted while their layer settled are not deleted in its shards.
    SettleForgetsLate,
    /// The same of compaction.
    CompactForgetsLate,
    /// What is late in a compaction is deleted at its old place in the new shard.
    CompactKeepsPlaces,
    /// The shards of a settled layer are durable in one write, the end of the layer in the next.
    SettleInTwoWrites,
    /// A layer settles though it was emptied meanwhile.
    SettleIgnoresGeneration,
    /// Shards are replaced though they are no longer there.
    CompactIgnoresRemoval,
    /// A deleted row of the sealed layer leaves nothing in the store.
    NoTombstone,
    /// What a transaction hides is not looked for where it lies at its commit.
    NoBinding,
    /// What a transaction hides is found where it settled, and not where it was compacted to.
    BindingStopsAtSettling,
    /// How rows moved is forgotten though a transaction may still ask.
    MovesForgottenEarly,
    /// Moves are followed that the rows looked at do not have behind them.
    MovesOfTheFuture,
    /// A transaction's rows are committed though the table was emptied meanwhile.
    TruncateUnnoticed,
    /// Two transactions may change one row.
    NoRowLocks,
    /// A row is changed though another transaction has changed it since the snapshot.
    ChangesUnnoticed,
    /// A row that was changed and has settled since the snapshot counts as the same.
    VersionIgnored,
    /// A row that was changed and has settled since the snapshot counts as deleted.
    SettledTakenForDeleted,
    /// A change says where the row lies now, and not where the transaction sees it.
    PlaceOfAnotherSnapshot,
    /// A savepoint's rows come back as they were bound then.
    SavepointNotBound,
    /// Objects are deleted that a snapshot needs.
    CleaningIgnoresSnapshots,
    /// Objects are deleted that are on their way into the catalog.
    CleaningIgnoresUploads,
    /// A transaction's own version of a row does not hide the one below.
    OwnRowsDoNotHide,
    /// A changed row does not hide its version in the sealed layer.
    SealedNotHidden,
    /// Nobody asks at a serializable transaction's commit whether what it has read is still so.
    ReadsNotValidated,
    /// Rows that were fresh when they were read are not thought of as settled since.
    FreshReadsStay,
    /// That rows move is not among what was written.
    MovesNotNoted,
    /// What was written is said by where it lay for who wrote it, and not where it lies at the commit.
    WritesNotedUnbound,
}

impl Bug {
    pub(super) const ALL: [Bug; 26] = [
        Bug::SettleForgetsLate,
        Bug::CompactForgetsLate,
        Bug::CompactKeepsPlaces,
        Bug::SettleInTwoWrites,
        Bug::SettleIgnoresGeneration,
        Bug::CompactIgnoresRemoval,
        Bug::NoTombstone,
        Bug::NoBinding,
        Bug::BindingStopsAtSettling,
        Bug::MovesForgottenEarly,
        Bug::MovesOfTheFuture,
        Bug::TruncateUnnoticed,
        Bug::NoRowLocks,
        Bug::ChangesUnnoticed,
        Bug::VersionIgnored,
        Bug::SettledTakenForDeleted,
        Bug::PlaceOfAnotherSnapshot,
        Bug::SavepointNotBound,
        Bug::CleaningIgnoresSnapshots,
        Bug::CleaningIgnoresUploads,
        Bug::OwnRowsDoNotHide,
        Bug::SealedNotHidden,
        Bug::ReadsNotValidated,
        Bug::FreshReadsStay,
        Bug::MovesNotNoted,
        Bug::WritesNotedUnbound,
    ];
}
