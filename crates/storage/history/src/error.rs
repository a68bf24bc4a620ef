//! Errors of archiving, restoring and reading past states.

use std::io;
use std::path::PathBuf;

/// Result of a history operation.
pub type Result<T, E = HistoryError> = std::result::Result<T, E>;

/// Failure of a history operation.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("could not read or write the catalog store")]
    Store(#[from] kv::Error),
    #[error(transparent)]
    Objects(#[from] objects::Error),
    #[error("{object} is damaged: {reason}")]
    Damaged { object: String, reason: &'static str },
    #[error("could not read or write the file or folder {}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Records missing between archived ones.
    #[error("archived WAL is incomplete: records {from} to {to} are missing")]
    Gap { from: u64, to: u64 },
    /// No checkpoint to begin with, and no archived log back to the beginning.
    #[error("no checkpoint is old enough, and the archived WAL does not reach back to the beginning")]
    NoCheckpoint,
    /// A point in time before the retention.
    #[error("snapshot too old")]
    TooOld,
    /// A point in time in the future.
    #[error("the snapshot lies in the future")]
    InFuture,
    /// A warehouse without history, where only the newest snapshot can be read.
    #[error("this warehouse archives no log, so only its newest state can be read")]
    NoHistory,
    #[error("could not read the catalog of the historical state")]
    Catalog(#[from] catalog::Error),
    /// A damaged record of this crate in the store.
    #[error("the {what} in the catalog store is damaged")]
    DamagedStore { what: &'static str },
    /// A restored store whose timeline is not recorded in the storage yet; nothing may be served from it before.
    #[error("the restored data folder must begin its new timeline before its history can be used")]
    TimelineNotBegun,
    #[error("the data folder {} is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{count} objects that the warehouse needs are missing, the first is {first}")]
    MissingObjects { count: usize, first: String },
    /// A data folder that is superseded: the warehouse was restored into another one, which has started.
    #[error(
        "the warehouse was restored and has gone on in timeline {newer}; this data folder is on the abandoned timeline {own}"
    )]
    Abandoned { own: u32, newer: u32 },
    /// A store that lacks archived records of its own timeline.
    #[error(
        "the data folder ends with record {own} of the log, and the storage has records up to {storage}: the folder is an older copy, or was truncated"
    )]
    StoreBehind { own: u64, storage: u64 },
    /// An archived record that differs from the store's record of the same number.
    #[error("record {record} of the log differs between the storage and the data folder: the histories have diverged")]
    Diverged { record: u64 },
    /// Archived records of the store that are no longer in the storage.
    #[error("records {from} to {to} of the log were copied to the storage, and are not there any more")]
    LogLost { from: u64, to: u64 },
    /// Records that do not form a chain: two servers, or a server on an older copy of its data folder, have written to
    /// the storage.
    #[error("the archived WAL mixes two histories: record {record} does not follow the record before it")]
    TwoHistories { record: u64 },
    #[error("{url} has no archived WAL and no checkpoint")]
    EmptyStorage { url: String },
}

impl HistoryError {
    /// Returns whether data folder and storage do not belong together, which a new timeline resolves.
    #[must_use]
    pub fn is_divergence(&self) -> bool {
        matches!(self, Self::Abandoned { .. } | Self::StoreBehind { .. } | Self::Diverged { .. } | Self::LogLost { .. })
    }
}
