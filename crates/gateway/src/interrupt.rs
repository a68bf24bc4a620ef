//! Why and how a running statement stops before its end.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError};

use crate::session::age::too_old;

/// Who or what stopped a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// CancelRequest or `pg_cancel_backend`.
    User,
    /// `statement_timeout`.
    Timeout,
    /// `max_snapshot_age`.
    TooOld,
    /// Shutdown, or `pg_terminate_backend`: the connection ends too.
    Terminated,
    /// The client hung up: nobody is left to tell.
    Gone,
}

impl Reason {
    /// What the client is told.
    pub(crate) fn error(self) -> SqlError {
        match self {
            Reason::User => SqlError::new(Condition::QueryCanceled, "canceling statement due to user request"),
            Reason::Timeout => SqlError::new(Condition::QueryCanceled, "canceling statement due to statement timeout"),
            Reason::TooOld => too_old(),
            Reason::Terminated => terminated(),
            Reason::Gone => SqlError::new(Condition::ConnectionFailure, "connection to client lost"),
        }
    }
}

/// What a client is told when its connection is ended from this side.
pub(crate) fn terminated() -> SqlError {
    SqlError::new(Condition::AdminShutdown, "terminating connection due to administrator command")
}

/// One running statement, as those see it who may want to stop it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    /// Fires at the interruption, whatever its reason.
    pub(crate) token: CancellationToken,
    reason: Arc<Mutex<Option<Reason>>>,
}

impl Running {
    /// Stops the statement; the first reason counts.
    pub(crate) fn stop(&self, reason: Reason) {
        self.reason.lock().get_or_insert(reason);
        self.token.cancel();
    }

    /// Why it was stopped; `None` while it may go on.
    pub(crate) fn reason(&self) -> Option<Reason> {
        *self.reason.lock()
    }
}

/// The handle on one connection that others hold.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    running: Mutex<Option<Running>>,
    terminate: CancellationToken,
}

impl Interrupt {
    /// A statement begins; it can be stopped from now until `end`.
    pub(crate) fn begin(&self) -> Running {
        let running = Running::default();
        *self.running.lock() = Some(running.clone());
        if self.terminate.is_cancelled() {
            running.stop(Reason::Terminated);
        }
        running
    }

    pub(crate) fn end(&self) {
        *self.running.lock() = None;
    }

    /// Stops the running statement, if there is one.
    pub(crate) fn stop_statement(&self, reason: Reason) {
        if let Some(running) = self.running.lock().as_ref() {
            running.stop(reason);
        }
    }

    /// Stops the running statement and ends the connection.
    pub(crate) fn terminate(&self) {
        self.terminate.cancel();
        self.stop_statement(Reason::Terminated);
    }

    /// Fires when the connection shall end.
    pub(crate) fn termination(&self) -> &CancellationToken {
        &self.terminate
    }
}
