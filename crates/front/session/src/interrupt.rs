//! Why and how a running statement stops before its end.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError};

use crate::snapshot_age::too_old;

/// Who or what stopped a statement.
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
    /// What it runs on was ended: its cluster was suspended, dropped or made smaller, and it has had its time to end.
    WorkerEnded,
    /// The client hung up: nobody is left to tell.
    Gone,
}

impl Reason {
    /// What the client is told.
    pub fn error(self) -> SqlError {
        match self {
            Reason::User => SqlError::new(Condition::QueryCanceled, "canceling statement due to user request"),
            Reason::Timeout => SqlError::new(Condition::QueryCanceled, "canceling statement due to statement timeout"),
            Reason::TooOld => too_old(),
            Reason::Terminated => terminated(),
            Reason::WorkerEnded => {
                SqlError::new(Condition::AdminShutdown, "canceling statement because its worker was ended")
            }
            Reason::Gone => SqlError::new(Condition::ConnectionFailure, "connection to client lost"),
        }
    }
}

/// What a client is told when its connection is ended from this side.
pub fn terminated() -> SqlError {
    SqlError::new(Condition::AdminShutdown, "terminating connection due to administrator command")
}

/// One running statement, as those see it who may want to stop it.
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

    /// Completes at the interruption, whatever its reason.
    pub async fn stopped(&self) {
        self.0.token.cancelled().await;
    }

    /// Why it was stopped; `None` while it may go on.
    pub fn reason(&self) -> Option<Reason> {
        *self.0.reason.lock()
    }
}

/// What a stop is meant for.
#[derive(Debug, Default)]
struct Current {
    /// Of statement after statement, until one of them is stopped.
    running: Running,
    /// Between statements there is nothing to stop.
    is_running: bool,
}

/// The handle on one connection that others hold.
#[derive(Debug, Default)]
pub struct Interrupt {
    current: Mutex<Current>,
    terminate: CancellationToken,
}

impl Interrupt {
    /// A statement begins; it can be stopped from now until `end`.
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

    /// Fires when the connection shall end.
    pub fn termination(&self) -> &CancellationToken {
        &self.terminate
    }
}
