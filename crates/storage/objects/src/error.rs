//! What can go wrong with object storage.

use std::io;

use uuid::Uuid;

/// Result of an operation on object storage.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of object storage. `object` is the whole URL of the object it happened to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not one of a storage.
    #[error("\"{url}\" is not the URL of a storage: {reason}")]
    Url { url: String, reason: String },
    /// The URL is well, its settings are not.
    #[error("failed to open the storage {url}")]
    Open { url: String, source: object_store::Error },
    /// The name cannot be the name of an object.
    #[error("\"{name}\" cannot be the name of an object: {reason}")]
    Name { name: String, reason: String },
    #[error("{object} does not exist")]
    NotFound { object: String, source: object_store::Error },
    /// The storage said no to these credentials.
    #[error("failed to {operation} {object}: access denied")]
    Denied { operation: &'static str, object: String, source: object_store::Error },
    /// Everything else the storage, or the way to it, answered; after the retries that made sense.
    #[error("failed to {operation} {object}")]
    Request { operation: &'static str, object: String, source: object_store::Error },
    /// Fewer bytes came than the object has.
    #[error("{object} was cut short: {found} bytes of {expected}")]
    Truncated { object: String, expected: u64, found: u64 },
    /// The bytes asked for lie beyond the object's end.
    #[error("{object} ends at byte {bytes}, before byte {end} that was asked for")]
    Range { object: String, bytes: u64, end: u64 },
    /// Another content is there than the one that was listed.
    #[error("{object} has changed since it was listed")]
    Changed { object: String },
    /// Another instance holds the storage prefix.
    #[error(
        "{storage} belongs to the Kiln instance {holder} ({about}). If that instance is gone for good, delete {object} to \
         release it; two instances writing to one prefix would destroy each other's data"
    )]
    Claimed { storage: String, object: String, holder: Uuid, about: String },
    /// The claim this instance held has been released or taken over; it must write no more.
    #[error("{storage} is no longer held by this instance ({instance}, epoch {epoch}): {now}")]
    ClaimLost { storage: String, instance: Uuid, epoch: u64, now: String },
    /// The claim object is not one this version can read.
    #[error("{object} is no claim this version understands: {reason}")]
    ClaimMalformed { object: String, reason: String },
}

impl Error {
    /// Whether there is no room on the disk that the object was to be written to.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// Whether trying again could help: the network, an overloaded storage, a body cut short.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Truncated { .. } => true,
            Self::Request { source, .. } => is_transient(source),
            _ => false,
        }
    }
}

fn is_transient(source: &object_store::Error) -> bool {
    match source {
        // A local disk that failed once is not asked again: its second answer could be a lie (a failed fsync is forgotten).
        object_store::Error::Generic { store, .. } => *store != crate::local::STORE,
        _ => false,
    }
}
