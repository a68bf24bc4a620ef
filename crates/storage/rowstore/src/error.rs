//! Errors of encoding and decoding rows and values.

use arrow::datatypes::DataType;

/// Result of converting rows to or from bytes or columns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A row or value that cannot be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a valid row.
    #[error("stored row is damaged: {0}")]
    Damaged(&'static str),
    /// The row has an unknown format: a newer version wrote it.
    #[error("stored row has format {0}, which this version cannot read")]
    UnknownFormat(u8),
    /// The row has more bytes than 32 bits or more columns than 16 bits can count.
    #[error("row is too large: {columns} columns, {bytes} bytes")]
    TooLarge { columns: usize, bytes: usize },
    /// The column's id does not follow the previous one: ids must be ascending and start at 1.
    #[error("column id {0} is out of order: a row's column ids must be positive and ascending")]
    ColumnOrder(i32),
    /// Lists are nested more deeply than any array type.
    #[error("lists are nested too deeply")]
    ListDepth,
    /// The Arrow type represents no SQL type.
    #[error("values of Arrow type {0} cannot be stored")]
    UnsupportedType(DataType),
    /// The value's type or range does not fit the column.
    #[error("{value} does not fit a column of Arrow type {column}")]
    TypeMismatch { value: &'static str, column: DataType },
    /// The values exceed the bytes or elements that one Arrow array can hold.
    #[error("values exceed the maximum size of one Arrow array of type {0}")]
    ArrayOverflow(DataType),
}
