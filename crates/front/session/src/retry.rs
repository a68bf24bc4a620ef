//! The reasons for which a statement is planned and run once more, and the ends of an attempt that has come to nothing.
//!
//! Below it are attempts of other kinds: `row_locks` tells by its own whether another transaction came first, and `executor` runs a plan again, with no new
//! plan, where a worker is lost.

use types::SqlError;

/// Why an attempt has to be made again, on what is committed by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Another transaction came first.
    Conflict,
    /// It has waited for its cluster: what it sees is as old as that.
    Waited,
}

/// Why an attempt to run a statement has neither begun to give rows nor is done.
#[derive(Debug)]
pub(crate) enum AttemptError {
    Retry(Retry),
    Failed(Box<SqlError>),
}

/// The outcome of one attempt.
pub(crate) type AttemptResult<T> = Result<T, AttemptError>;

impl From<Retry> for AttemptError {
    fn from(retry: Retry) -> Self {
        Self::Retry(retry)
    }
}

impl From<SqlError> for AttemptError {
    fn from(error: SqlError) -> Self {
        Self::Failed(Box::new(error))
    }
}
