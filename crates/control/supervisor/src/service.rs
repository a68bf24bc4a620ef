//! One service: its state, for those who ask.

use std::fmt;

use parking_lot::Mutex;
use types::ServiceHealth;

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// It runs, and its last work succeeded.
    Running,
    /// It runs, but its work fails; it is tried again.
    Failing,
    /// It panicked or ended, and is started again soon.
    Restarting,
    /// It had something to do once, and has done it.
    Done,
}

impl fmt::Display for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Failing => "failing",
            Self::Restarting => "restarting",
            Self::Done => "done",
        })
    }
}

/// A service as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStatus {
    pub name: &'static str,
    pub state: ServiceState,
    /// Microseconds since 1970, of its last start.
    pub started_us: i64,
    /// Starts after the first.
    pub restarts: u64,
    /// The failure of its work; if its work succeeds, the cause of its last restart.
    pub last_error: Option<String>,
}

impl ServiceStatus {
    /// True if its work fails or it is about to be started again.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        matches!(self.state, ServiceState::Failing | ServiceState::Restarting)
    }
}

/// A service's record, which its task writes and statuses are read from.
pub(crate) struct Service {
    pub(crate) name: &'static str,
    run: Mutex<ServiceRun>,
}

/// The current run of a service.
struct ServiceRun {
    /// A new one for each run: what a run that has ended reported is not this one's.
    health: ServiceHealth,
    phase: RunPhase,
    started_us: i64,
    restarts: u64,
    last_end: Option<String>,
}

#[derive(Clone, Copy)]
enum RunPhase {
    Running,
    Restarting,
    Done,
}

impl Service {
    pub(crate) fn new(name: &'static str, now_us: i64) -> Self {
        let run = ServiceRun {
            health: ServiceHealth::default(),
            phase: RunPhase::Running,
            started_us: now_us,
            restarts: 0,
            last_end: None,
        };
        Self { name, run: Mutex::new(run) }
    }

    /// The health that its first run reports to.
    pub(crate) fn health(&self) -> ServiceHealth {
        self.run.lock().health.clone()
    }

    pub(crate) fn restart(&self, now_us: i64) -> ServiceHealth {
        let mut run = self.run.lock();
        run.health = ServiceHealth::default();
        run.phase = RunPhase::Running;
        run.started_us = now_us;
        run.restarts += 1;
        run.health.clone()
    }

    /// It ended for this reason, and is started again after a pause.
    pub(crate) fn record_end(&self, reason: String) {
        let mut run = self.run.lock();
        run.phase = RunPhase::Restarting;
        run.last_end = Some(reason);
    }

    pub(crate) fn record_done(&self) {
        self.run.lock().phase = RunPhase::Done;
    }

    pub(crate) fn status(&self) -> ServiceStatus {
        let run = self.run.lock();
        let trouble = run.health.last_failure();
        let state = match run.phase {
            RunPhase::Running if trouble.is_some() => ServiceState::Failing,
            RunPhase::Running => ServiceState::Running,
            RunPhase::Restarting => ServiceState::Restarting,
            RunPhase::Done => ServiceState::Done,
        };
        let last_error = match run.phase {
            RunPhase::Running => trouble.or_else(|| run.last_end.clone()),
            RunPhase::Restarting | RunPhase::Done => run.last_end.clone(),
        };
        ServiceStatus { name: self.name, state, started_us: run.started_us, restarts: run.restarts, last_error }
    }
}
