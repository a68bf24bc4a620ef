//! Why the engine gives up.

/// What the engine does not decide by itself: the operators that its program stands for run instead, and say what is wrong where
/// something is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that a type cannot hold, a division by zero: the statement fails, unless no row needed the value.
    #[error("a value cannot be computed: {0}")]
    Value(&'static str),
    /// Data in a form that the program was not made for.
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
    /// What an expression from outside found.
    #[error("{0}")]
    Foreign(Box<dyn std::error::Error + Send + Sync>),
    /// What Arrow's functions found.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

impl From<types::SqlError> for Error {
    fn from(error: types::SqlError) -> Self {
        Self::Foreign(Box::new(error))
    }
}

/// The engine's results.
pub type Result<T> = std::result::Result<T, Error>;
