//! What can go wrong with a shard.

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// Result of an operation on a shard.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of reading or writing a shard. `object` is its name below the storage prefix.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The storage failed.
    #[error(transparent)]
    Objects(#[from] objects::Error),
    #[error("failed to encode {object}")]
    Encode { object: String, source: ParquetError },
    #[error("failed to decode {object}")]
    Decode { object: String, source: ParquetError },
    /// The bytes are not those that were written.
    #[error("{object} is damaged: {reason}")]
    Damaged { object: String, reason: String },
    /// The file is no Parquet file, or not one that can be read.
    #[error("{object} cannot be read: {reason}")]
    Foreign { object: String, reason: String },
    /// A file of this machine cannot be opened.
    #[error("could not open file \"{file}\"")]
    File { file: String, source: std::io::Error },
    /// A block that was made of a column is not what it should be.
    #[error("a cached block cannot be used")]
    Block(#[from] blocks::Error),
    /// Values are not of the type they should have.
    #[error("failed to convert values")]
    Arrow(#[from] ArrowError),
    /// A task that encoded or decoded has panicked, or the server is shutting down.
    #[error("a task stopped: {reason}")]
    Stopped { reason: String },
}
