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
    /// The file is not the one that was listed any more.
    #[error("{object} has changed since it was listed")]
    Changed { object: String },
    /// The file lacks a column that it should have.
    #[error("{object} has no column \"{column}\"")]
    NoColumn { object: String, column: String },
    /// A column of the file holds values of a type that the wanted one cannot be had of.
    #[error("column \"{column}\" of {object} is of type {found}, not {wanted}")]
    ColumnType { object: String, column: String, found: String, wanted: String },
    /// A value of the file does not fit the type that its column should have.
    #[error("value out of range for type {wanted} in column \"{column}\" of {object}: {reason}")]
    OutOfRange { object: String, column: String, wanted: String, reason: String },
    /// The file has a NULL where none may be.
    #[error("null value in column \"{column}\" of {object}, which is declared NOT NULL")]
    Null { object: String, column: String },
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
