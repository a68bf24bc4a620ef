//! Interruption of running statements: reasons, and handles to stop them.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError};

use crate::snapshot_age::snapshot_too_old;

/// Reason for stopping a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptReason {
    /// CancelRequest or `pg_cancel_backend`.
    CancelRequest,
    /// `statement_timeout`.
    Timeout,
    /// `max_snapshot_age`.
    SnapshotTooOld,
    /// Shutdown, or `pg_terminate_backend`: the connection ends too.
    Terminated,
    /// Its worker lease has ended: the cluster was suspended, dropped or shrunk, and the time to drain is over.
    LeaseEnded,
    /// Disconnect of the client.
    ClientDisconnected,
}

impl InterruptReason {
    /// Returns the error for the client.
    pub fn error(self) -> SqlError {
        match self {
            InterruptReason::CancelRequest => {
                SqlError::new(Condition::QueryCanceled, "canceling statement due to user request")
            }
            InterruptReason::Timeout => {
                SqlError::new(Condition::QueryCanceled, "canceling statement due to statement timeout")
            }
            InterruptReason::SnapshotTooOld => snapshot_too_old(),
            InterruptReason::Terminated => terminated_error(),
            InterruptReason::LeaseEnded => {
                SqlError::new(Condition::AdminShutdown, "canceling statement because its worker was shut down")
            }
            InterruptReason::ClientDisconnected => {
                SqlError::new(Condition::ConnectionFailure, "connection to client lost")
            }
        }
    }
}

/// Returns the error for a client whose connection the server ends (`57P01`).
pub fn terminated_error() -> SqlError {
    SqlError::new(Condition::AdminShutdown, "terminating connection due to administrator command")
}

/// Handle to stop one running statement.
#[derive(Debug, Clone, Default)]
pub struct StatementHandle(Arc<StatementStopState>);

#[derive(Debug, Default)]
struct StatementStopState {
    token: CancellationToken,
    reason: Mutex<Option<InterruptReason>>,
}

impl StatementHandle {
    /// Stops the statement; the first reason counts.
    pub fn stop(&self, reason: InterruptReason) {
        self.0.reason.lock().get_or_insert(reason);
        self.0.token.cancel();
    }

    /// Completes when the statement is stopped.
    pub async fn stopped(&self) {
        self.0.token.cancelled().await;
    }

    /// Returns the reason why the statement was stopped; `None` if it was not.
    pub fn reason(&self) -> Option<InterruptReason> {
        *self.0.reason.lock()
    }
}

/// Present statement of a connection.
#[derive(Debug, Default)]
struct CurrentStatement {
    /// Handle of the statement; the next statements use it too, until one of them is stopped.
    running: StatementHandle,
    /// False between statements, when there is nothing to stop.
    is_running: bool,
}

/// Handle to stop the statements of one connection, or the connection.
#[derive(Debug, Default)]
pub struct InterruptHandle {
    current: Mutex<CurrentStatement>,
    terminate: CancellationToken,
}

impl InterruptHandle {
    /// Begins a statement; it can be stopped until `end`.
    pub fn begin(&self) -> StatementHandle {
        let running = {
            let mut current = self.current.lock();
            if current.running.reason().is_some() {
                current.running = StatementHandle::default();
            }
            current.is_running = true;
            current.running.clone()
        };
        if self.terminate.is_cancelled() {
            running.stop(InterruptReason::Terminated);
        }
        running
    }

    /// Ends the statement.
    pub fn end(&self) {
        self.current.lock().is_running = false;
    }

    /// Stops the running statement, if there is one.
    pub fn stop_statement(&self, reason: InterruptReason) {
        let current = self.current.lock();
        if current.is_running {
            current.running.stop(reason);
        }
    }

    /// Stops the running statement and ends the connection.
    pub fn terminate(&self) {
        self.terminate.cancel();
        self.stop_statement(InterruptReason::Terminated);
    }

    /// Returns the token that is cancelled when the connection has to end.
    pub fn termination(&self) -> &CancellationToken {
        &self.terminate
    }
}
