//! Reasons to retry a statement, and the errors of one attempt.
//!
//! `row_locks` has an `AttemptOutcome` of its own, which says whether another transaction changed a row first; here
//! that becomes [`RetryReason::Conflict`].

use executor::RunContext;
use types::SqlError;

use crate::running_statement::Statement;

/// Reason to retry a statement with a newer snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryReason {
    /// Another transaction changed a row first.
    Conflict,
    /// The statement has waited for its cluster, so that its snapshot is old.
    WaitedForCluster,
    /// A worker was lost; the next attempt excludes it.
    WorkerLost,
}

/// Error of an attempt that has neither opened rows nor completed.
#[derive(Debug)]
pub(crate) enum AttemptError {
    Retry(RetryReason),
    Failed(Box<SqlError>),
}

/// Outcome of one attempt.
pub(crate) type AttemptResult<T> = Result<T, AttemptError>;

impl AttemptError {
    /// Converts the error of a run that has sent nothing to the client: to a retry if a worker was lost, once per
    /// statement.
    pub(crate) fn from_run(error: SqlError, context: &RunContext, statement: &Statement) -> Self {
        match context.report_lost_worker(&error) {
            Some(worker) if statement.exclude_worker(worker.clone()) => {
                tracing::warn!(%worker, error = error.message, "lost a worker: retrying the statement without it");
                RetryReason::WorkerLost.into()
            }
            _ => error.into(),
        }
    }
}

impl From<RetryReason> for AttemptError {
    fn from(retry: RetryReason) -> Self {
        Self::Retry(retry)
    }
}

impl From<SqlError> for AttemptError {
    fn from(error: SqlError) -> Self {
        Self::Failed(Box::new(error))
    }
}
