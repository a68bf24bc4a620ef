//! What can go wrong between BEGIN and COMMIT.

use std::sync::Arc;

use history::HistoryError;

use crate::Conflict;

/// Result of a transaction's step.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of a transaction, or of the store under all of them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another transaction came first; run this one again.
    #[error("could not serialize access due to concurrent update")]
    Conflict(#[from] Conflict),
    /// The change breaks an invariant of the catalog.
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error("savepoint \"{name}\" does not exist")]
    UnknownSavepoint { name: String },
    /// An object was announced for a transaction that has ended.
    #[error("object {object} belongs to a transaction that has ended")]
    Ended { object: String },
    /// Nothing was changed.
    #[error("row is too big: size {bytes}, maximum size {most}")]
    RowTooBig { bytes: usize, most: usize },
    /// The transaction, or its next change, asks for more than one write of the store can have; nothing was written.
    #[error("a transaction cannot change {bytes} bytes of rows: it can change at most {most}")]
    CommitTooBig { bytes: u64, most: u64 },
    /// A definition is larger than the store's values can be; nothing was written.
    #[error("a definition is too big to be stored")]
    DefinitionTooBig(#[source] kv::Error),
    /// The write of this commit failed. Whether it took effect is known after the server has started again; until then every
    /// call is [`Error::Poisoned`].
    #[error("failed to make the commit durable; whether it took effect is known after a restart")]
    InDoubt(#[source] Arc<kv::Error>),
    /// An earlier write failed; the server has to stop and start again.
    #[error("the catalog is not usable since an earlier write to it failed")]
    Poisoned,
    /// The store's disk has no room for the commit; nothing was written.
    #[error("no space left on the disk of the catalog: {free} bytes are free, of which {kept} are kept free")]
    DiskFull { free: u64, kept: u64 },
    /// The store could not be read.
    #[error("failed to read the store")]
    Store(#[from] kv::Error),
    /// A record of the store that this crate keeps is not what was written.
    #[error("the stored {what} is damaged")]
    Damaged { what: &'static str },
    /// The store's history does not let anybody be served from it.
    #[error(transparent)]
    OpenHistory(Box<HistoryError>),
    /// The thread that commits could not be started.
    #[error("failed to start the committer")]
    Committer(#[source] std::io::Error),
    /// The storage is not this server's any more, or could not be asked whether it is.
    #[error("failed to make sure of the claim on the storage")]
    Claim(#[source] objects::Error),
    /// The log could not be copied, so nothing is deleted.
    #[error("failed to copy the log to the storage")]
    History(#[source] Box<HistoryError>),
    /// The bucket could not be listed.
    #[error("failed to list the objects of tables")]
    List(#[source] objects::Error),
}

impl Error {
    /// Maps an error of opening the history.
    pub(crate) fn from_opening(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => Self::Store(error),
            HistoryError::DamagedStore { what } => Self::Damaged { what },
            error => Self::OpenHistory(Box::new(error)),
        }
    }
}
