//! Reasons to plan and run a statement once more, and the errors of one attempt.
//!
//! `row_locks` has an `Attempt` of its own, which says whether another transaction changed a row first; it becomes [`Retry::Conflict`] here.

use executor::RunContext;
use types::SqlError;

use crate::statement::Statement;

/// Why an attempt has to be made again, on what is committed by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Another transaction came first.
    Conflict,
    /// It has waited for its cluster: what it sees is as old as that.
    Waited,
    /// A worker was lost; the next attempt excludes it.
    WorkerLost,
}

/// Why an attempt to run a statement has neither begun to give rows nor is done.
#[derive(Debug)]
pub(crate) enum AttemptError {
    Retry(Retry),
    Failed(Box<SqlError>),
}

/// The outcome of one attempt.
pub(crate) type AttemptResult<T> = Result<T, AttemptError>;

impl AttemptError {
    /// Converts the error of a run that has sent nothing to the client: a retry where a worker was lost, once per statement.
    pub(crate) fn from_run(error: SqlError, context: &RunContext, statement: &Statement) -> Self {
        match context.report_lost_worker(&error) {
            Some(worker) if statement.exclude_worker(worker.clone()) => {
                tracing::warn!(%worker, error = error.message, "worker lost: retrying the statement without it");
                Retry::WorkerLost.into()
            }
            _ => error.into(),
        }
    }
}

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
