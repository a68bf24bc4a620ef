//! Admission to a cluster: a limited number of statements runs at a time, and the others wait in a fair queue.
//!
//! - `limits_and_statistics.rs`: limits, modes, refusals and statistics
//! - `gate.rs`: the decisions, over plain data
//! - `fair_queue.rs`: the order of waiting statements
//!
//! This file has the lock around the gate, and futures that wait by wakers, so that they work under every executor and
//! in simulated time. Wakers are neither woken nor dropped under the lock, because both may call back into this module.

mod fair_queue;
mod gate;
mod limits_and_statistics;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cluster_model::ClusterActivity;
use gate::{EnterResult, Gate, LeaveResult, OutcomeResult, QueueTicket};
use parking_lot::Mutex;
use types::{Clock, Oid, QueryId};

pub use limits_and_statistics::{
    AdmissionMode, AdmissionSnapshot, AdmissionStatistics, Limits, QueuedStatement, Refusal,
};

/// Request of a statement to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub statement: QueryId,
    /// User of the statement. Users take turns; the statements of one user run in order of arrival.
    pub user: Oid,
    /// Number of the user's statements that are admitted at each of its turns; 0 counts as 1.
    pub weight: u32,
    /// True for a superuser. One superuser statement may run beyond the limit, so that a superuser can act when other
    /// statements occupy the cluster.
    pub is_superuser: bool,
}

/// Admission control of one cluster.
#[derive(Debug)]
pub struct Admission {
    gate: Mutex<Gate<Waker>>,
    clock: Arc<dyn Clock>,
}

impl Admission {
    /// Creates an admission control without running or waiting statements.
    #[must_use]
    pub fn new(limits: Limits, mode: AdmissionMode, clock: Arc<dyn Clock>) -> Arc<Admission> {
        let gate = Gate::new(limits, mode, clock.now_us());
        Arc::new(Admission { gate: Mutex::new(gate), clock })
    }

    /// Returns a future that waits for admission. The statement enters the queue when the future is first polled, and
    /// leaves it when the future is dropped.
    pub fn admit(self: &Arc<Self>, request: Request) -> Admit {
        Admit { admission: Arc::clone(self), request, state: AdmitState::Initial }
    }

    /// Admits a statement without waiting; `None` if it would have to wait or is refused.
    #[must_use]
    pub fn try_admit(self: &Arc<Self>, request: &Request) -> Option<Permit> {
        let is_admitted = self.gate.lock().try_enter(request.is_superuser);
        is_admitted.then(|| self.permit(request, Duration::ZERO))
    }

    fn permit(self: &Arc<Self>, request: &Request, waited: Duration) -> Permit {
        Permit { admission: Arc::clone(self), waited, is_superuser: request.is_superuser }
    }

    /// Cancels a waiting statement with [`Refusal::Cancelled`]. Returns false if it is not waiting.
    pub fn cancel(&self, statement: QueryId) -> bool {
        let cancelled = self.gate.lock().cancel(statement, || self.clock.now_us());
        let Some(waker) = cancelled else { return false };
        waker.wake();
        true
    }

    /// Changes the limits. Running and waiting statements stay; waiting ones are admitted if there is room now.
    pub fn set_limits(&self, limits: Limits) {
        let now = self.clock.monotonic();
        let admitted = self.gate.lock().set_limits(limits, now);
        admitted.into_iter().for_each(Waker::wake);
    }

    /// Changes the mode.
    pub fn set_mode(&self, mode: AdmissionMode) {
        let (now, now_us) = (self.clock.monotonic(), self.clock.now_us());
        let told = self.gate.lock().set_mode(mode, now, now_us);
        told.into_iter().for_each(Waker::wake);
    }

    /// Returns the activity, for load balancing and for suspending idle clusters.
    #[must_use]
    pub fn activity(&self) -> ClusterActivity {
        self.gate.lock().activity()
    }

    /// Returns all state for display, with waiting statements in the order of their admission.
    #[must_use]
    pub fn snapshot(&self) -> AdmissionSnapshot {
        let now = self.clock.monotonic();
        self.gate.lock().snapshot(now)
    }

    /// Ends a running statement and admits the next one.
    fn release(&self, is_superuser: bool) {
        let mut gate = self.gate.lock();
        let next = gate.release(is_superuser, || (self.clock.monotonic(), self.clock.now_us()));
        drop(gate);
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// Future that waits for admission.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Admit {
    admission: Arc<Admission>,
    request: Request,
    state: AdmitState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdmitState {
    /// Before the first poll.
    Initial,
    Waiting(QueueTicket),
    /// Admitted or refused.
    Done,
}

impl Future for Admit {
    type Output = Result<Permit, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let answer = match this.state {
            AdmitState::Initial => {
                let clock = &this.admission.clock;
                let entered =
                    this.admission.gate.lock().enter(this.request, || clock.monotonic(), || context.waker().clone());
                match entered {
                    EnterResult::Admitted => Ok(Duration::ZERO),
                    EnterResult::Refused(refusal) => Err(refusal),
                    EnterResult::Queued(ticket) => {
                        this.state = AdmitState::Waiting(ticket);
                        return Poll::Pending;
                    }
                }
            }
            AdmitState::Waiting(ticket) => {
                let claim = this.admission.gate.lock().take_outcome(ticket, || context.waker().clone());
                match claim {
                    OutcomeResult::Waiting(_) => return Poll::Pending,
                    OutcomeResult::Admitted { waited } => Ok(waited),
                    OutcomeResult::Refused(refusal) => Err(refusal),
                }
            }
            AdmitState::Done => panic!("Admit was polled after it had completed"),
        };
        this.state = AdmitState::Done;
        Poll::Ready(answer.map(|waited| this.admission.permit(&this.request, waited)))
    }
}

impl Drop for Admit {
    fn drop(&mut self) {
        let AdmitState::Waiting(ticket) = self.state else { return };
        let clock = &self.admission.clock;
        // It may have been admitted since the last poll: then the next statement is admitted instead.
        let left = self.admission.gate.lock().leave(ticket, || (clock.monotonic(), clock.now_us()));
        if let LeaveResult::Decided(Some(next)) = left {
            next.wake();
        }
    }
}

/// Permit to run, which is released when it is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped lets the next one run"]
pub struct Permit {
    admission: Arc<Admission>,
    waited: Duration,
    is_superuser: bool,
}

impl Permit {
    /// Returns the time that the statement has waited for admission.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.release(self.is_superuser);
    }
}
