//! Errors of transactions.

use std::sync::Arc;

use history::HistoryError;

use crate::Conflict;

/// Result of a transaction's operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a transaction, or of the store that all transactions share.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A conflict with a concurrent transaction that committed first; the transaction must run again.
    #[error("could not serialize access due to concurrent update")]
    Conflict(#[from] Conflict),
    /// A change that breaks an invariant of the catalog.
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error("savepoint \"{name}\" does not exist")]
    UnknownSavepoint { name: String },
    /// An announcement of an object after the transaction has ended.
    #[error("object {object} belongs to a transaction that has ended")]
    TransactionEnded { object: String },
    /// A row longer than the store allows; nothing was changed.
    #[error("row is too big: size {bytes}, maximum size {limit}")]
    RowTooBig { bytes: usize, limit: usize },
    /// More changed bytes than one write of the store can hold; nothing was written.
    #[error("a transaction cannot change {bytes} bytes of rows: it can change at most {limit}")]
    CommitTooBig { bytes: u64, limit: u64 },
    /// A definition larger than a value of the store can be; nothing was written.
    #[error("the definition of a catalog object is too big to be stored")]
    DefinitionTooBig(#[source] kv::Error),
    /// A failed write of this commit. Only a restart shows whether it took effect; until then every call returns
    /// [`Error::Poisoned`].
    #[error("failed to make the commit durable; whether it took effect is known after a restart")]
    InDoubt(#[source] Arc<kv::Error>),
    /// An earlier failed write; the server must stop and start again.
    #[error("the catalog is not usable since an earlier write to it failed")]
    Poisoned,
    /// Too little disk space for the commit; nothing was written.
    #[error(
        "no space left on the disk of the catalog: {free} bytes are free, and {reserve_bytes} bytes must stay free"
    )]
    DiskFull { free: u64, reserve_bytes: u64 },
    /// A failed read of the store.
    #[error("could not read the catalog store")]
    Store(#[from] kv::Error),
    /// A damaged record of this crate in the store.
    #[error("the {what} in the catalog store is damaged")]
    Damaged { what: &'static str },
    /// A history that does not allow serving from this store, or could not be opened.
    #[error(transparent)]
    OpenHistory(Box<HistoryError>),
    /// A failure to start the committer's thread.
    #[error("could not start the committer thread")]
    StartCommitter(#[source] std::io::Error),
    /// A claim on the storage that was lost to another server or could not be verified.
    #[error("could not verify that this server still owns the storage")]
    ClaimNotVerified(#[source] objects::Error),
    /// A failure to copy the log to the storage; nothing is deleted before it succeeds.
    #[error("could not copy the log to the object storage before cleaning up")]
    ArchiveLog(#[source] Box<HistoryError>),
    /// A failed listing of the bucket.
    #[error("could not list the objects in the storage")]
    ListObjects(#[source] objects::Error),
}

impl Error {
    /// Converts an error of opening the history.
    pub(crate) fn from_opening(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => Self::Store(error),
            HistoryError::DamagedStore { what } => Self::Damaged { what },
            error => Self::OpenHistory(Box::new(error)),
        }
    }
}
