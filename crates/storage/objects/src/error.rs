//! Errors of object storage.

use std::io;

use uuid::Uuid;

/// Result of an operation on object storage.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of object storage. `object` is the full URL of the object concerned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL does not denote a storage.
    #[error("\"{url}\" is not the URL of an object storage: {reason}")]
    InvalidUrl { url: String, reason: String },
    /// The URL is valid, but the storage cannot be opened with the given settings.
    #[error("failed to open the object storage {url}")]
    Open { url: String, source: object_store::Error },
    /// The name is not a valid object name.
    #[error("\"{name}\" cannot be the name of an object: {reason}")]
    InvalidName { name: String, reason: String },
    /// The object does not exist.
    #[error("{object} does not exist")]
    NotFound { object: String, source: object_store::Error },
    /// The storage rejected the credentials, or they do not permit the operation.
    #[error("failed to {operation} {object}: access denied")]
    AccessDenied { operation: &'static str, object: String, source: object_store::Error },
    /// Any other failure of the storage or the network, after all retries.
    #[error("failed to {operation} {object}")]
    Request { operation: &'static str, object: String, source: object_store::Error },
    /// The response body had fewer bytes than the object or range.
    #[error("the response for {object} was truncated: {found} of {expected} bytes were received")]
    Truncated { object: String, expected: u64, found: u64 },
    /// The requested range extends beyond the object's end.
    #[error("{object} ends at byte {bytes}, but the requested range ends at byte {end}")]
    RangeBeyondEnd { object: String, bytes: u64, end: u64 },
    /// The object was replaced after it was listed.
    #[error("{object} has changed since it was listed")]
    Changed { object: String },
    /// Another instance owns the storage prefix.
    #[error(
        "{storage} belongs to the Kiln instance {holder} ({about}). If that instance is gone for good, delete {object} to \
         release it; two instances writing to one prefix would destroy each other's data"
    )]
    Claimed { storage: String, object: String, holder: Uuid, about: String },
    /// This instance's claim was released or taken over; the instance must not write any more.
    #[error("this instance ({instance}, epoch {epoch}) no longer owns {storage}: {reason}")]
    ClaimLost { storage: String, instance: Uuid, epoch: u64, reason: String },
    /// The claim object cannot be read by this version.
    #[error("{object} is not a valid claim of a storage prefix: {reason}")]
    ClaimMalformed { object: String, reason: String },
}

impl Error {
    /// Whether the cause is a full disk or an exceeded quota.
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

    /// Whether a retry could succeed: network failures, an overloaded storage, truncated bodies.
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
        // Failures of a local disk are not retried: after a failed fsync a second one can succeed although data is
        // lost.
        object_store::Error::Generic { store, .. } => *store != crate::local::STORE_NAME,
        _ => false,
    }
}
