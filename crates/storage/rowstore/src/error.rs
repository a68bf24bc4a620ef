//! What can go wrong with rows and their values.

use arrow::datatypes::DataType;

/// Result of turning rows into bytes or columns, and back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A row or value that cannot be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes that no writer of this format makes.
    #[error("stored row is damaged: {0}")]
    Damaged(&'static str),
    /// The row was written by a newer version.
    #[error("stored row has format {0}, which this version does not read")]
    Format(u8),
    /// More bytes than four, or columns than two bytes count.
    #[error("row is too large: {columns} columns, {bytes} bytes")]
    TooLarge { columns: usize, bytes: usize },
    /// Columns of a row come by ascending id, and ids start at 1.
    #[error("column {0} is out of order")]
    Order(i32),
    /// Lists within lists deeper than any array type.
    #[error("lists are nested too deep")]
    Depth,
    /// No SQL type travels in this Arrow type.
    #[error("values of Arrow type {0} cannot be stored")]
    Unsupported(DataType),
    /// A value of another type than its column.
    #[error("{value} does not fit a column of Arrow type {column}")]
    Mismatch { value: &'static str, column: DataType },
    /// More bytes or elements than one Arrow array holds.
    #[error("too much data for one column of Arrow type {0}")]
    Full(DataType),
}
