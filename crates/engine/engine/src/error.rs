//! Errors of programs.

use types::{Condition, SqlError};

/// The reason for which a program fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that a fast loop cannot compute. The expression's [`Fallback`](crate::expression::Fallback) evaluates the batch instead.
    #[error("a value cannot be computed: {0}")]
    Value(&'static str),
    /// Internal error: a column has another form than the program was compiled for.
    #[error("columns in another form than expected: {0}")]
    Form(&'static str),
    /// The query's memory is used up.
    #[error("no memory left for {0}")]
    Memory(&'static str),
    /// Nobody wants the rows any more.
    #[error("stopped")]
    Stopped,
    /// A limit lets no more rows pass; a worker tells nobody of it.
    #[error("as many rows as are wanted")]
    Enough,
    /// The error that the client gets.
    #[error(transparent)]
    Sql(Box<SqlError>),
    /// What Arrow's functions found.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl Error {
    /// Returns whether other rows can still be computed: true of all errors of expressions but those about memory and cancellation.
    pub(crate) fn is_about_values(&self) -> bool {
        match self {
            Self::Value(_) | Self::Arrow(_) => true,
            Self::Sql(error) => !matches!(error.condition, Condition::OutOfMemory | Condition::QueryCanceled),
            Self::Form(_) | Self::Memory(_) | Self::Stopped | Self::Enough => false,
        }
    }

    /// Creates an error with SQLSTATE 22003.
    pub(crate) fn out_of_range(message: &'static str) -> Self {
        SqlError::new(Condition::NumericValueOutOfRange, message).into()
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Self {
        Self::Sql(Box::new(error))
    }
}

/// The engine's results.
pub type Result<T> = std::result::Result<T, Error>;
