//! Who may run on a cluster now: so many statements at a time, and the others wait in a fair queue.
//!
//! `gate.rs` decides over plain data, `fair_queue.rs` in which order; here are the lock around it and the waiting, by wakers, so that
//! it works under every executor and in simulated time. Nobody is woken under the lock, and no waker
//! dropped: both may come back here at once.

mod facts;
mod fair_queue;
mod gate;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cluster_model::Activity;
use gate::{Claim, Enter, Gate, Left, Ticket};
use parking_lot::Mutex;
use types::{Clock, Oid, QueryId};

pub use facts::{Limits, Mode, Queued, Refusal, Snapshot, Totals};

/// A statement that asks to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub statement: QueryId,
    /// Statements of one user wait for each other, users take turns.
    pub user: Oid,
    /// Statements of this user that may go at each of its turns, at least 1.
    pub weight: u32,
    /// Whether the user is a superuser: while none of these runs there is one place more for one, so that a superuser can do something about others
    /// that hold all places.
    pub is_superuser: bool,
}

/// The admission to one cluster.
#[derive(Debug)]
pub struct Admission {
    gate: Mutex<Gate<Waker>>,
    clock: Arc<dyn Clock>,
}

impl Admission {
    /// Nobody runs or waits.
    #[must_use]
    pub fn new(limits: Limits, mode: Mode, clock: Arc<dyn Clock>) -> Arc<Admission> {
        let gate = Gate::new(limits, mode, clock.now_us());
        Arc::new(Admission { gate: Mutex::new(gate), clock })
    }

    /// Asks to run. The place in the queue is taken when the future is first polled, and given up when it is dropped.
    pub fn admit(self: &Arc<Self>, request: Request) -> Admit {
        Admit { admission: Arc::clone(self), request, place: Place::Outside }
    }

    /// Runs at once, or not at all. `None` where it would have to wait or is refused.
    #[must_use]
    pub fn try_admit(self: &Arc<Self>, request: &Request) -> Option<Permit> {
        let is_admitted = self.gate.lock().try_enter(request.is_superuser);
        is_admitted.then(|| self.permit(request, Duration::ZERO))
    }

    fn permit(self: &Arc<Self>, request: &Request, waited: Duration) -> Permit {
        Permit { admission: Arc::clone(self), waited, is_superuser: request.is_superuser }
    }

    /// Ends the waiting of a statement with [`Refusal::Cancelled`]. False where it does not wait: it runs, or was never here.
    pub fn cancel(&self, statement: QueryId) -> bool {
        let cancelled = self.gate.lock().cancel(statement, || self.clock.now_us());
        let Some(waker) = cancelled else { return false };
        waker.wake();
        true
    }

    /// Changes how many run and wait. Who runs or waits already stays; who now has room goes.
    pub fn set_limits(&self, limits: Limits) {
        let now = self.clock.monotonic();
        let admitted = self.gate.lock().set_limits(limits, now);
        admitted.into_iter().for_each(Waker::wake);
    }

    /// Opens, holds or closes the gate.
    pub fn set_mode(&self, mode: Mode) {
        let (now, now_us) = (self.clock.monotonic(), self.clock.now_us());
        let told = self.gate.lock().set_mode(mode, now, now_us);
        told.into_iter().for_each(Waker::wake);
    }

    /// How much is going on: for the choice of a cluster, and for letting it sleep.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.gate.lock().activity()
    }

    /// Everything, for showing it. Who waits is in the order in which they will go.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let now = self.clock.monotonic();
        self.gate.lock().snapshot(now)
    }

    fn release(&self, is_superuser: bool) {
        let mut gate = self.gate.lock();
        let next = gate.release(is_superuser, || (self.clock.monotonic(), self.clock.now_us()));
        drop(gate);
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// Waits to be admitted.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Admit {
    admission: Arc<Admission>,
    request: Request,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not polled yet.
    Outside,
    Waiting(Ticket),
    /// Has its answer.
    Done,
}

impl Future for Admit {
    type Output = Result<Permit, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let answer = match this.place {
            Place::Outside => {
                let clock = &this.admission.clock;
                let entered =
                    this.admission.gate.lock().enter(this.request, || clock.monotonic(), || context.waker().clone());
                match entered {
                    Enter::Admitted => Ok(Duration::ZERO),
                    Enter::Refused(refusal) => Err(refusal),
                    Enter::Queued(ticket) => {
                        this.place = Place::Waiting(ticket);
                        return Poll::Pending;
                    }
                }
            }
            Place::Waiting(ticket) => {
                let claim = this.admission.gate.lock().claim(ticket, || context.waker().clone());
                match claim {
                    Claim::Waiting(_) => return Poll::Pending,
                    Claim::Admitted { waited } => Ok(waited),
                    Claim::Refused(refusal) => Err(refusal),
                }
            }
            Place::Done => panic!("an answered request is not asked again"),
        };
        this.place = Place::Done;
        Poll::Ready(answer.map(|waited| this.admission.permit(&this.request, waited)))
    }
}

impl Drop for Admit {
    fn drop(&mut self) {
        let Place::Waiting(ticket) = self.place else { return };
        let clock = &self.admission.clock;
        // It may have been admitted just now, and nobody is there to run: then the next one is.
        let left = self.admission.gate.lock().leave(ticket, || (clock.monotonic(), clock.now_us()));
        if let Left::Answered(Some(next)) = left {
            next.wake();
        }
    }
}

/// The right to run, given back when it is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped lets the next one run"]
pub struct Permit {
    admission: Arc<Admission>,
    waited: Duration,
    is_superuser: bool,
}

impl Permit {
    /// How long the statement waited for it; zero where it did not have to.
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
