//! How long a statement was in each state of its life, as `sys.log_query` shows it.

use std::time::Duration;

use binder::{Phase, Phases};
use session_context::LIFE;

#[cfg(test)]
mod tests;

/// The states of a statement's life, in the order of [`LIFE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Parse,
    Plan,
    /// Operators are made; told by the plan, not entered.
    Assemble,
    /// The engine's programs are made; told by the plan, not entered.
    Compile,
    /// It waits for a cluster.
    AcquireResources,
    Run,
    /// It waits for its client; told by the connection, not entered.
    Client,
}

/// One statement's. Times are of one monotonic clock.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    state: State,
    since: Duration,
    ended: Option<Duration>,
    spent: [Duration; LIFE.len()],
    /// What is known of the plan that runs.
    phases: Option<Phases>,
    /// How long the session had waited for its client before.
    client_before: Duration,
}

impl Life {
    /// A statement that begins to be planned.
    pub(crate) fn begin(now: Duration, client_before: Duration) -> Self {
        let spent = Default::default();
        Self { state: State::Plan, since: now, ended: None, spent, phases: None, client_before }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// From now on it is in this state.
    pub(crate) fn enter(&mut self, state: State, now: Duration) {
        self.spent[self.state as usize] += now.saturating_sub(self.since);
        (self.state, self.since) = (state, now);
    }

    /// What was done for it before it began.
    pub(crate) fn add(&mut self, state: State, time: Duration) {
        self.spent[state as usize] += time;
    }

    /// The plan that it runs. Those of its phases that are over count already.
    pub(crate) fn runs(&mut self, phases: Option<Phases>) {
        self.phases = phases;
    }

    pub(crate) fn end(&mut self, now: Duration) {
        self.ended.get_or_insert(now);
    }

    /// How long it was in each state by `now`, where the session has waited for its client for `client` in all.
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
