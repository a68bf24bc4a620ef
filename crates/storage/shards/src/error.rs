//! Errors of reading and writing shards.

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// Result of an operation on a shard.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of reading or writing a shard. `object` is the file's name below the storage prefix.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The storage failed.
    #[error(transparent)]
    Objects(#[from] objects::Error),
    #[error("failed to encode {object}")]
    Encode { object: String, source: ParquetError },
    #[error("failed to decode {object}")]
    Decode { object: String, source: ParquetError },
    /// The bytes differ from those that were written.
    #[error("{object} is damaged: {reason}")]
    Damaged { object: String, reason: String },
    /// The file is not a Parquet file, or not a readable one.
    #[error("{object} is not a Parquet file that Kiln can read: {reason}")]
    NotReadable { object: String, reason: String },
    /// The external file has changed since it was listed.
    #[error("{object} has changed since it was listed")]
    Changed { object: String },
    /// The file lacks a required column.
    #[error("{object} has no column \"{column}\"")]
    NoColumn { object: String, column: String },
    /// A column of the file has a type that cannot be converted to the wanted one.
    #[error("column \"{column}\" of {object} is of type {found}, not {wanted}")]
    ColumnType { object: String, column: String, found: String, wanted: String },
    /// A value of the file is out of range for its column's type.
    #[error("value out of range for type {wanted} in column \"{column}\" of {object}: {reason}")]
    OutOfRange { object: String, column: String, wanted: String, reason: String },
    /// The file has a NULL in a column declared NOT NULL.
    #[error("null value in column \"{column}\" of {object}, which is declared NOT NULL")]
    Null { object: String, column: String },
    /// A local file cannot be opened.
    #[error("could not open file \"{file}\"")]
    File { file: String, source: std::io::Error },
    /// A block of the cache cannot be built or read.
    #[error("could not build or read a block of the column cache")]
    Block(#[from] blocks::Error),
    /// Values do not have the expected type.
    #[error("failed to convert values")]
    Arrow(#[from] ArrowError),
    /// An encoding or decoding task panicked, or the server is shutting down.
    #[error("a background task of the shard reader or writer ended: {reason}")]
    TaskEnded { reason: String },
}
