//! Errors of compiled programs.

use types::{Condition, SqlError};

/// Error that ends the evaluation of a batch or the whole program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that a fast loop cannot compute. The expression's [`Fallback`](crate::expression::Fallback) evaluates
    /// the batch instead.
    #[error("a value cannot be computed: {0}")]
    UncomputableValue(&'static str),
    /// Broken invariant of the engine, such as a column whose physical type differs from the one the program was
    /// compiled for. Clients get SQLSTATE XX000.
    #[error("engine invariant violated: {0}")]
    Internal(&'static str),
    /// The query's memory limit is reached; the text names the structure that needed memory. Clients get SQLSTATE
    /// 53200.
    #[error("no memory left for {0}")]
    OutOfMemory(&'static str),
    /// The query was cancelled or its reader no longer wants rows.
    #[error("the query that the engine runs was stopped")]
    Stopped,
    /// A LIMIT has let all of its rows pass. Ends a worker's current batch and is never reported to the client.
    #[error("a LIMIT has passed on all its rows: no further rows are wanted")]
    LimitReached,
    /// Error with its own SQLSTATE, passed to the client unchanged.
    #[error(transparent)]
    Sql(Box<SqlError>),
    /// Error of an Arrow kernel.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl Error {
    /// Returns whether other rows may still be computable: true for every error of an expression except out of memory
    /// and query cancellation.
    pub(crate) fn is_row_error(&self) -> bool {
        match self {
            Self::UncomputableValue(_) | Self::Arrow(_) => true,
            Self::Sql(error) => !matches!(error.condition, Condition::OutOfMemory | Condition::QueryCanceled),
            Self::Internal(_) | Self::OutOfMemory(_) | Self::Stopped | Self::LimitReached => false,
        }
    }

    /// Creates a numeric_value_out_of_range error (SQLSTATE 22003).
    pub(crate) fn out_of_range(message: &'static str) -> Self {
        SqlError::new(Condition::NumericValueOutOfRange, message).into()
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Self {
        Self::Sql(Box::new(error))
    }
}

/// Result of the engine's operations.
pub type Result<T> = std::result::Result<T, Error>;
