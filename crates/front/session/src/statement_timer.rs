//! Time that a statement spends in each state, as `sys.log_query` shows it.

use std::time::Duration;

use binder::{PlanningPhase, PlanningTimings};
use session_context::STATEMENT_PHASES;

#[cfg(test)]
mod tests;

/// States of a statement, in the order of [`STATEMENT_PHASES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementState {
    Parse,
    Plan,
    /// Building the operators; measured by the plan, never entered.
    Assemble,
    /// Compiling the engine's programs; measured by the plan, never entered.
    Compile,
    /// Waiting for a cluster.
    AcquireResources,
    Run,
    /// Waiting for the client; measured by the connection, never entered.
    Client,
}

/// Timer of one statement. All times are of one monotonic clock.
#[derive(Debug, Clone)]
pub(crate) struct StatementTimer {
    state: StatementState,
    /// Time at which the present state was entered.
    entered_at: Duration,
    /// Time at which the statement ended; `None` while it runs.
    ended_at: Option<Duration>,
    /// Time spent in each state before the present one.
    spent: [Duration; STATEMENT_PHASES.len()],
    /// Planning times of the plan that runs, if it measures them.
    planning_timings: Option<PlanningTimings>,
    /// Time that the session had waited for its client before the statement.
    client_wait_before: Duration,
}

impl StatementTimer {
    /// Starts the timer in state [`StatementState::Plan`].
    pub(crate) fn begin(now: Duration, client_before: Duration) -> Self {
        let spent = Default::default();
        Self {
            state: StatementState::Plan,
            entered_at: now,
            ended_at: None,
            spent,
            planning_timings: None,
            client_wait_before: client_before,
        }
    }

    pub(crate) fn state(&self) -> StatementState {
        self.state
    }

    /// Enters a state.
    pub(crate) fn enter(&mut self, state: StatementState, now: Duration) {
        self.spent[self.state as usize] += now.saturating_sub(self.entered_at);
        (self.state, self.entered_at) = (state, now);
    }

    /// Adds time that was spent for the statement before it began.
    pub(crate) fn add_time(&mut self, state: StatementState, time: Duration) {
        self.spent[state as usize] += time;
    }

    /// Sets the planning times of the plan that runs; phases that are over already count.
    pub(crate) fn set_planning_timings(&mut self, phases: Option<PlanningTimings>) {
        self.planning_timings = phases;
    }

    pub(crate) fn end(&mut self, now: Duration) {
        self.ended_at.get_or_insert(now);
    }

    /// Returns the time spent in each state until `now`, given the total time `client` that the session has waited for
    /// its client.
    pub(crate) fn times_until(&self, now: Duration, client: Duration) -> [Duration; STATEMENT_PHASES.len()] {
        let mut spent = self.spent;
        spent[self.state as usize] += self.ended_at.unwrap_or(now).saturating_sub(self.entered_at);
        let mut of_run = |state: StatementState, time: Duration| {
            let time = time.min(spent[StatementState::Run as usize]);
            spent[StatementState::Run as usize] -= time;
            spent[state as usize] += time;
        };
        of_run(StatementState::Client, client.saturating_sub(self.client_wait_before));
        if let Some(phases) = &self.planning_timings {
            of_run(StatementState::Plan, phases.spent(PlanningPhase::Optimization));
            of_run(StatementState::Assemble, phases.spent(PlanningPhase::PhysicalPlanning));
            of_run(StatementState::Compile, phases.spent(PlanningPhase::Compilation));
        }
        spent
    }
}
