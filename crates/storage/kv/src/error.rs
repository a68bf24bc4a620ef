//! What can go wrong with the store.

use std::path::PathBuf;

use crate::redb::DamagedTree;
use crate::{BATCH_BYTES_MAX, KEY_BYTES_MAX, Space, VALUE_BYTES_MAX};

/// Result of an operation on the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The backend's own error.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another handle, of this process or another, has the file open.
    #[error("{} is in use: only one instance may open it at a time", path.display())]
    AlreadyOpen { path: PathBuf },
    /// The file could not be opened or made.
    #[error("failed to open {}", path.display())]
    Open { path: PathBuf, source: Source },
    /// The file was written by a newer version.
    #[error("{} has format {found}, and this version of Kiln reads formats up to {supported}: a newer one has written it", path.display())]
    Format { path: PathBuf, found: u64, supported: u64 },
    /// The log has a record and lacks one before it, which was durable.
    #[error(
        "the write-ahead log of {} is damaged: record {found} is there, and those after {after} are not; `kiln restore` rebuilds the store from its storage",
        path.display()
    )]
    Damaged { path: PathBuf, after: u64, found: u64 },
    /// An entry was changed on the disk after it was written.
    #[error(
        "an entry in space {space:?} of {} is damaged: it does not have its checksum; `kiln restore` rebuilds the store from its storage",
        path.display()
    )]
    DamagedEntry { path: PathBuf, space: Space },
    /// A read failed; nothing changed.
    #[error("failed to read space {space:?} of {}", path.display())]
    Read { path: PathBuf, space: Space, source: Source },
    /// No read could begin; nothing changed.
    #[error("failed to read {}", path.display())]
    ReadAny { path: PathBuf, source: Source },
    /// A write failed. Whether it took effect is known only after the store is opened again, so this handle refuses
    /// everything from now on.
    #[error("failed to write to {}", path.display())]
    Write { path: PathBuf, source: Source },
    /// An earlier write failed (see [`Error::Write`]); the process has to stop and start again.
    #[error("{} is not usable since an earlier write to it failed", path.display())]
    Poisoned { path: PathBuf },
    /// The copy could not be made; the store itself is well.
    #[error("failed to write a checkpoint to {}", path.display())]
    Checkpoint { path: PathBuf, source: Source },
    /// The copy would replace something.
    #[error("failed to write a checkpoint to {}: the file exists", path.display())]
    CheckpointExists { path: PathBuf },
    #[error("a key of {bytes} bytes in space {space:?} is longer than {KEY_BYTES_MAX}")]
    KeyTooLong { space: Space, bytes: usize },
    #[error("a value of {bytes} bytes in space {space:?} is longer than {VALUE_BYTES_MAX}")]
    ValueTooLong { space: Space, bytes: usize },
    #[error("a batch of {bytes} bytes is longer than {BATCH_BYTES_MAX}")]
    BatchTooLong { bytes: usize },
    /// A record of the log is not what was written.
    #[error("a record of the log is damaged")]
    MalformedRecord,
    /// A key's bytes are not what its reader expects.
    #[error("malformed key: {expected} expected at byte {position}")]
    MalformedKey { expected: &'static str, position: usize },
}

impl Error {
    /// Whether what the disk holds is not what was written to it.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::DamagedEntry { .. } | Self::MalformedRecord | Self::MalformedKey { .. } => {
                true
            }
            Self::Open { source, .. } | Self::Read { source, .. } | Self::ReadAny { source, .. } => {
                is_damage(&**source)
            }
            _ => false,
        }
    }
}

fn is_damage(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let is_corrupted = |error: &::redb::StorageError| matches!(error, ::redb::StorageError::Corrupted(_));
    source.is::<DamagedTree>()
        || source.downcast_ref::<::redb::StorageError>().is_some_and(is_corrupted)
        || matches!(source.downcast_ref::<::redb::DatabaseError>(), Some(::redb::DatabaseError::Storage(error)) if is_corrupted(error))
        || matches!(source.downcast_ref::<::redb::TableError>(), Some(::redb::TableError::Storage(error)) if is_corrupted(error))
}
