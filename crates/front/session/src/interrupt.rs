//! Interruption of running statements: reasons, and handles to stop them.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError};

use crate::snapshot_age::too_old;

/// Reason for stopping a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// CancelRequest or `pg_cancel_backend`.
    User,
    /// `statement_timeout`.
    Timeout,
    /// `max_snapshot_age`.
    TooOld,
    /// Shutdown, or `pg_terminate_backend`: the connection ends too.
    Terminated,
    /// Its worker lease has ended: the cluster was suspended, dropped or shrunk, and the time to drain is over.
    WorkerEnded,
    /// Disconnect of the client.
    Gone,
}

impl Reason {
    /// Returns the error for the client.
    pub fn error(self) -> SqlError {
        match self {
            Reason::User => SqlError::new(Condition::QueryCanceled, "canceling statement due to user request"),
            Reason::Timeout => SqlError::new(Condition::QueryCanceled, "canceling statement due to statement timeout"),
            Reason::TooOld => too_old(),
            Reason::Terminated => terminated(),
            Reason::WorkerEnded => {
                SqlError::new(Condition::AdminShutdown, "canceling statement because its worker was shut down")
            }
            Reason::Gone => SqlError::new(Condition::ConnectionFailure, "connection to client lost"),
        }
    }
}

/// Returns the error for a client whose connection the server ends (`57P01`).
pub fn terminated() -> SqlError {
    SqlError::new(Condition::AdminShutdown, "terminating connection due to administrator command")
}

/// Handle to stop one running statement.
#[derive(Debug, Clone, Default)]
pub struct Running(Arc<Stop>);

#[derive(Debug, Default)]
struct Stop {
    token: CancellationToken,
    reason: Mutex<Option<Reason>>,
}

impl Running {
    /// Stops the statement; the first reason counts.
    pub fn stop(&self, reason: Reason) {
        self.0.reason.lock().get_or_insert(reason);
        self.0.token.cancel();
    }

    /// Completes when the statement is stopped.
    pub async fn stopped(&self) {
        self.0.token.cancelled().await;
    }

    /// Returns the reason why the statement was stopped; `None` if it was not.
    pub fn reason(&self) -> Option<Reason> {
        *self.0.reason.lock()
    }
}

/// Present statement of a connection.
#[derive(Debug, Default)]
struct Current {
    /// Handle of the statement; the next statements use it too, until one of them is stopped.
    running: Running,
    /// False between statements, when there is nothing to stop.
    is_running: bool,
}

/// Handle to stop the statements of one connection, or the connection.
#[derive(Debug, Default)]
pub struct Interrupt {
    current: Mutex<Current>,
    terminate: CancellationToken,
}

impl Interrupt {
    /// Begins a statement; it can be stopped until `end`.
    pub fn begin(&self) -> Running {
        let running = {
            let mut current = self.current.lock();
            if current.running.reason().is_some() {
                current.running = Running::default();
            }
            current.is_running = true;
            current.running.clone()
        };
        if self.terminate.is_cancelled() {
            running.stop(Reason::Terminated);
        }
        running
    }

    /// Ends the statement.
    pub fn end(&self) {
        self.current.lock().is_running = false;
    }

    /// Stops the running statement, if there is one.
    pub fn stop_statement(&self, reason: Reason) {
        let current = self.current.lock();
        if current.is_running {
            current.running.stop(reason);
        }
    }

    /// Stops the running statement and ends the connection.
    pub fn terminate(&self) {
        self.terminate.cancel();
        self.stop_statement(Reason::Terminated);
    }

    /// Returns the token that is cancelled when the connection has to end.
    pub fn termination(&self) -> &CancellationToken {
        &self.terminate
    }
}
