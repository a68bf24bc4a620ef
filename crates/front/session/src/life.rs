//! Time that a statement spends in each state, as `sys.log_query` shows it.

use std::time::Duration;

use binder::{Phase, Phases};
use session_context::LIFE;

#[cfg(test)]
mod tests;

/// States of a statement, in the order of [`LIFE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
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
pub(crate) struct Life {
    state: State,
    /// Time at which the present state was entered.
    since: Duration,
    /// Time at which the statement ended; `None` while it runs.
    ended: Option<Duration>,
    /// Time spent in each state before the present one.
    spent: [Duration; LIFE.len()],
    /// Planning times of the plan that runs, if it measures them.
    phases: Option<Phases>,
    /// Time that the session had waited for its client before the statement.
    client_before: Duration,
}

impl Life {
    /// Starts the timer in state [`State::Plan`].
    pub(crate) fn begin(now: Duration, client_before: Duration) -> Self {
        let spent = Default::default();
        Self { state: State::Plan, since: now, ended: None, spent, phases: None, client_before }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Enters a state.
    pub(crate) fn enter(&mut self, state: State, now: Duration) {
        self.spent[self.state as usize] += now.saturating_sub(self.since);
        (self.state, self.since) = (state, now);
    }

    /// Adds time that was spent for the statement before it began.
    pub(crate) fn add(&mut self, state: State, time: Duration) {
        self.spent[state as usize] += time;
    }

    /// Sets the planning times of the plan that runs; phases that are over already count.
    pub(crate) fn runs(&mut self, phases: Option<Phases>) {
        self.phases = phases;
    }

    pub(crate) fn end(&mut self, now: Duration) {
        self.ended.get_or_insert(now);
    }

    /// Returns the time spent in each state until `now`, given the total time `client` that the session has waited for
    /// its client.
    pub(crate) fn by(&self, now: Duration, client: Duration) -> [Duration; LIFE.len()] {
        let mut spent = self.spent;
        spent[self.state as usize] += self.ended.unwrap_or(now).saturating_sub(self.since);
        let mut of_run = |state: State, time: Duration| {
            let time = time.min(spent[State::Run as usize]);
            spent[State::Run as usize] -= time;
            spent[state as usize] += time;
        };
        of_run(State::Client, client.saturating_sub(self.client_before));
        if let Some(phases) = &self.phases {
            of_run(State::Plan, phases.spent(Phase::Rules));
            of_run(State::Assemble, phases.spent(Phase::Operators));
            of_run(State::Compile, phases.spent(Phase::Programs));
        }
        spent
    }
}
