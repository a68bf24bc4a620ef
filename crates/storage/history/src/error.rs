//! Errors of keeping the past, and of going back to it.

use std::io;
use std::path::PathBuf;

/// Result of a step in the past.
pub type Result<T, E = HistoryError> = std::result::Result<T, E>;

/// A failure of the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("failed to read the store")]
    Store(#[from] kv::Error),
    #[error(transparent)]
    Objects(#[from] objects::Error),
    #[error("{object} is damaged: {reason}")]
    Damaged { object: String, reason: &'static str },
    #[error("failed to read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Records are missing in the middle.
    #[error("the log has a gap: records {from} to {to} are missing")]
    Gap { from: u64, to: u64 },
    /// There is no checkpoint that it could begin with, and the log does not reach back to the beginning.
    #[error("there is no checkpoint of that moment or before, and the log does not begin with the warehouse")]
    NoStart,
    /// The moment is older than what is kept.
    #[error("snapshot too old")]
    TooOld,
    /// The moment has not come.
    #[error("there has been no such snapshot yet")]
    NotYet,
    /// The warehouse keeps no history: the newest snapshot alone can be read.
    #[error("this warehouse keeps no history")]
    None,
    #[error("the catalog as of that moment cannot be read")]
    Catalog(#[from] catalog::Error),
    /// A record of the store is not what was written.
    #[error("the stored {what} is damaged")]
    DamagedStore { what: &'static str },
    /// Nobody may be served from a restored store before its timeline is known to the storage.
    #[error("the restored store has not begun its timeline")]
    TimelineNotBegun,
    #[error("{} is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{count} objects that the warehouse needs are missing, the first is {first}")]
    Missing { count: usize, first: String },
    /// Another data folder was restored from the storage, and is the warehouse now.
    #[error(
        "the warehouse was restored and has gone on in timeline {newer}; this data folder is of timeline {own} and left behind"
    )]
    LeftBehind { own: u32, newer: u32 },
    /// The storage has records of the store's timeline that the store lacks.
    #[error(
        "the data folder ends with record {own} of the log, and the storage has records up to {storage}: the folder is an older copy, or has lost its end"
    )]
    Behind { own: u64, storage: u64 },
    /// The storage's records are not the store's.
    #[error("record {record} of the log in the storage is another than the data folder's: they are two histories")]
    Diverged { record: u64 },
    /// The storage has had records of the store's, and lacks them now.
    #[error("records {from} to {to} of the log were copied to the storage, and are not there any more")]
    LogLost { from: u64, to: u64 },
    /// Two servers, or a server on an older copy of its data folder, have written to the storage.
    #[error("the log is not one history: record {record} does not follow the one before it")]
    TwoHistories { record: u64 },
    #[error("{url} holds no log and no checkpoint")]
    Nothing { url: String },
}

impl HistoryError {
    /// Whether data folder and storage do not belong together, which a new timeline would put an end to.
    #[must_use]
    pub fn is_divergence(&self) -> bool {
        matches!(self, Self::LeftBehind { .. } | Self::Behind { .. } | Self::Diverged { .. } | Self::LogLost { .. })
    }
}
