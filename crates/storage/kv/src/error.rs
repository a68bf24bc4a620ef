//! Errors of the key-value store.

use std::path::PathBuf;

use crate::redb::DamagedPage;
use crate::{BATCH_BYTES_MAX, KEY_BYTES_MAX, Space, VALUE_BYTES_MAX};

/// Result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the backend below, such as `redb` or the operating system.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is already open in this or another process.
    #[error("the store file {} is in use: only one instance may open it at a time", path.display())]
    AlreadyOpen { path: PathBuf },
    /// The file could not be opened or created.
    #[error("failed to open the store file {}", path.display())]
    Open { path: PathBuf, source: Source },
    /// The file was written by a newer version of Kiln.
    #[error(
        "the store file {} has format {found}, but this version of Kiln reads formats up to {supported}: \
         a newer version wrote it",
        path.display()
    )]
    UnsupportedFormat { path: PathBuf, found: u64, supported: u64 },
    /// The write-ahead log has a gap: it has record `found`, but durable records between `after` and it are missing.
    #[error(
        "the write-ahead log of {} is damaged: it has record {found}, but records after {after} are missing; \
         `kiln restore` rebuilds the store from its storage",
        path.display()
    )]
    LogGap { path: PathBuf, after: u64, found: u64 },
    /// An entry does not match its checksum: the disk changed it after it was written.
    #[error(
        "an entry in key space {space:?} of {} is damaged: its checksum does not match; \
         `kiln restore` rebuilds the store from its storage",
        path.display()
    )]
    DamagedEntry { path: PathBuf, space: Space },
    /// A read from a key space failed; the store is unchanged.
    #[error("failed to read key space {space:?} of the store file {}", path.display())]
    Read { path: PathBuf, space: Space, source: Source },
    /// A read transaction could not be started; the store is unchanged.
    #[error("failed to begin a read transaction on the store file {}", path.display())]
    BeginRead { path: PathBuf, source: Source },
    /// A write failed. Whether it took effect is known only after the store has been reopened, so the handle refuses
    /// every later call.
    #[error("failed to write to the store file {}", path.display())]
    Write { path: PathBuf, source: Source },
    /// An earlier write failed (see [`Error::Write`]); the process has to be restarted.
    #[error("the store file {} is unusable until restart: an earlier write to it failed", path.display())]
    Poisoned { path: PathBuf },
    /// A checkpoint could not be written; the store itself is not affected.
    #[error("failed to write a checkpoint of the store to {}", path.display())]
    Checkpoint { path: PathBuf, source: Source },
    /// A file exists at the checkpoint's path; checkpoints never replace files.
    #[error("failed to write a checkpoint of the store to {}: the file exists", path.display())]
    CheckpointExists { path: PathBuf },
    /// A key is longer than [`KEY_BYTES_MAX`].
    #[error("a key of {bytes} bytes in key space {space:?} exceeds the limit of {KEY_BYTES_MAX} bytes")]
    KeyTooLong { space: Space, bytes: usize },
    /// A value is longer than [`VALUE_BYTES_MAX`].
    #[error("a value of {bytes} bytes in key space {space:?} exceeds the limit of {VALUE_BYTES_MAX} bytes")]
    ValueTooLong { space: Space, bytes: usize },
    /// A batch is larger than [`BATCH_BYTES_MAX`].
    #[error("a write batch of {bytes} bytes exceeds the limit of {BATCH_BYTES_MAX} bytes")]
    BatchTooLong { bytes: usize },
    /// A log record cannot be decoded or does not match its checksum.
    #[error("a record of the logical log is damaged: it cannot be decoded or its checksum does not match")]
    DamagedRecord,
    /// A key cannot be decoded.
    #[error("malformed key of a key-value entry: {expected} expected at byte {position}")]
    MalformedKey { expected: &'static str, position: usize },
}

impl Error {
    /// Whether the error means that data on disk is damaged or missing.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::LogGap { .. } | Self::DamagedEntry { .. } | Self::DamagedRecord | Self::MalformedKey { .. } => true,
            Self::Open { source, .. } | Self::Read { source, .. } | Self::BeginRead { source, .. } => {
                is_damage(&**source)
            }
            _ => false,
        }
    }
}

fn is_damage(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let is_corrupted = |error: &::redb::StorageError| matches!(error, ::redb::StorageError::Corrupted(_));
    source.is::<DamagedPage>()
        || source.downcast_ref::<::redb::StorageError>().is_some_and(is_corrupted)
        || matches!(source.downcast_ref::<::redb::DatabaseError>(), Some(::redb::DatabaseError::Storage(error)) if is_corrupted(error))
        || matches!(source.downcast_ref::<::redb::TableError>(), Some(::redb::TableError::Storage(error)) if is_corrupted(error))
}
