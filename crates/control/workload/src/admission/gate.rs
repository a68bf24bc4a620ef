//! Admission decisions over plain data, without locks or wakers of its own. `W` is the type of wakers.

use std::collections::HashMap;
use std::time::Duration;

use cluster_model::ClusterActivity;
use types::{Oid, QueryId};

use super::Request;
use super::fair_queue::FairQueue;
use super::limits_and_statistics::{
    AdmissionMode, AdmissionSnapshot, AdmissionStatistics, Limits, QueuedStatement, Refusal,
};

/// Number of a waiting statement; later ones are higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueTicket(u64);

/// Result of [`Gate::enter`].
pub(super) enum EnterResult {
    Admitted,
    Queued(QueueTicket),
    Refused(Refusal),
}

/// Result of [`Gate::take_outcome`].
pub(super) enum OutcomeResult<W> {
    /// Still waiting; holds the replaced waker, to be dropped outside the lock.
    Waiting(W),
    Admitted {
        waited: Duration,
    },
    Refused(Refusal),
}

/// Result of [`Gate::leave`].
pub(super) enum LeaveResult<W> {
    /// The statement was waiting; holds its waker, to be dropped outside the lock.
    Waiting(W),
    /// The statement was admitted or refused already; holds the waker of the statement that is admitted instead.
    Decided(Option<W>),
}

/// Admission state of a cluster.
#[derive(Debug)]
pub(super) struct Gate<W> {
    limits: Limits,
    mode: AdmissionMode,
    running: u32,
    /// Number of running statements of superusers.
    running_superusers: u32,
    /// Waiting statements by user.
    queue: FairQueue<Oid, QueueTicket>,
    /// Statements with a ticket, including answered ones whose future has not been polled since.
    waiting: HashMap<QueueTicket, WaitingStatement<W>>,
    next_ticket: u64,
    idle_since: Option<i64>,
    totals: AdmissionStatistics,
}

/// Statement with a ticket.
#[derive(Debug)]
struct WaitingStatement<W> {
    statement: QueryId,
    user: Oid,
    is_superuser: bool,
    since: Duration,
    outcome: Outcome<W>,
}

/// Answer to a statement with a ticket.
#[derive(Debug)]
enum Outcome<W> {
    /// No answer yet; holds the waker.
    Queued(W),
    /// Admitted; counts as running already.
    Admitted {
        waited: Duration,
    },
    Refused(Refusal),
}

impl<W> Gate<W> {
    pub(super) fn new(limits: Limits, mode: AdmissionMode, now_us: i64) -> Gate<W> {
        Gate {
            limits,
            mode,
            running: 0,
            running_superusers: 0,
            queue: FairQueue::default(),
            waiting: HashMap::new(),
            next_ticket: 0,
            idle_since: Some(now_us),
            totals: AdmissionStatistics::default(),
        }
    }

    /// Admits a statement if no one waits and there is room, or if a superuser may exceed the limit.
    pub(super) fn try_enter(&mut self, is_superuser: bool) -> bool {
        let has_room = self.mode == AdmissionMode::Open && self.running < self.limits.running && self.queue.is_empty();
        let enters = has_room || is_superuser && self.may_superuser_exceed_limit();
        if enters {
            self.count_running(is_superuser);
            self.idle_since = None;
        }
        enters
    }

    /// Whether one superuser statement may run beyond the limit: none is running.
    fn may_superuser_exceed_limit(&self) -> bool {
        self.mode == AdmissionMode::Open && self.running_superusers == 0
    }

    /// Counts a statement as running.
    fn count_running(&mut self, is_superuser: bool) {
        self.running += 1;
        self.running_superusers += u32::from(is_superuser);
        self.totals.admitted += 1;
    }

    /// Admits, queues or refuses a statement. `now` and `waker` are called only if it has to wait.
    pub(super) fn enter(
        &mut self,
        request: Request,
        now: impl FnOnce() -> Duration,
        waker: impl FnOnce() -> W,
    ) -> EnterResult {
        if self.try_enter(request.is_superuser) {
            return EnterResult::Admitted;
        }
        let refusal = match self.mode {
            AdmissionMode::Closed => Some(Refusal::Closed),
            _ if self.limits.queued <= self.queued() => Some(Refusal::QueueFull { limit: self.limits.queued }),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.totals.refused += 1;
            return EnterResult::Refused(refusal);
        }
        self.next_ticket += 1;
        let ticket = QueueTicket(self.next_ticket);
        let Request { statement, user, weight, is_superuser } = request;
        let outcome = Outcome::Queued(waker());
        self.waiting.insert(ticket, WaitingStatement { statement, user, is_superuser, since: now(), outcome });
        self.queue.push(user, weight, ticket);
        self.idle_since = None;
        EnterResult::Queued(ticket)
    }

    /// Takes the answer and frees the ticket if there is one; otherwise replaces the waker.
    pub(super) fn take_outcome(&mut self, ticket: QueueTicket, waker: impl FnOnce() -> W) -> OutcomeResult<W> {
        let waiting = self.waiting.get_mut(&ticket).expect("a ticket is valid until its answer is taken");
        match &mut waiting.outcome {
            Outcome::Queued(known) => OutcomeResult::Waiting(std::mem::replace(known, waker())),
            Outcome::Admitted { waited } => {
                let waited = *waited;
                self.waiting.remove(&ticket);
                OutcomeResult::Admitted { waited }
            }
            Outcome::Refused(refusal) => {
                let refusal = *refusal;
                self.waiting.remove(&ticket);
                OutcomeResult::Refused(refusal)
            }
        }
    }

    /// Gives up a ticket without taking its answer. `now` returns monotonic time and wall-clock time.
    pub(super) fn leave(&mut self, ticket: QueueTicket, now: impl FnOnce() -> (Duration, i64)) -> LeaveResult<W> {
        let waiting = self.waiting.remove(&ticket).expect("a ticket is valid until its answer is taken");
        match waiting.outcome {
            Outcome::Queued(waker) => {
                self.queue.remove(&waiting.user, ticket);
                self.totals.cancelled += 1;
                self.record_idle(|| now().1);
                LeaveResult::Waiting(waker)
            }
            Outcome::Admitted { .. } => LeaveResult::Decided(self.release(waiting.is_superuser, now)),
            Outcome::Refused(_) => LeaveResult::Decided(None),
        }
    }

    /// Ends a running statement and admits the next one. Returns the waker of that one.
    pub(super) fn release(&mut self, is_superuser: bool, now: impl FnOnce() -> (Duration, i64)) -> Option<W> {
        self.running = self.running.checked_sub(1).expect("a released statement was counted as running");
        let superusers = self.running_superusers.checked_sub(u32::from(is_superuser));
        self.running_superusers = superusers.expect("a released superuser statement was counted as running");
        if self.queue.is_empty() {
            self.record_idle(|| now().1);
            return None;
        }
        let (now, _) = now();
        self.admit_next(now)
    }

    /// Cancels a waiting statement. Returns its waker; `None` if it is not waiting.
    pub(super) fn cancel(&mut self, statement: QueryId, now_us: impl FnOnce() -> i64) -> Option<W> {
        let is_it = |waiting: &WaitingStatement<W>| {
            waiting.statement == statement && matches!(waiting.outcome, Outcome::Queued(_))
        };
        let (ticket, waiting) = self.waiting.iter_mut().find(|(_, waiting)| is_it(waiting))?;
        self.queue.remove(&waiting.user, *ticket);
        self.totals.cancelled += 1;
        let told = waiting.outcome.refuse(Refusal::Cancelled);
        self.record_idle(now_us);
        told
    }

    /// Changes the limits and admits statements that have room now. Returns their wakers.
    pub(super) fn set_limits(&mut self, limits: Limits, now: Duration) -> Vec<W> {
        self.limits = limits;
        self.admit_all(now)
    }

    /// Changes the mode: refuses all waiting statements if it is closed, otherwise admits those that have room. Returns
    /// their wakers.
    pub(super) fn set_mode(&mut self, mode: AdmissionMode, now: Duration, now_us: i64) -> Vec<W> {
        self.mode = mode;
        if mode != AdmissionMode::Closed {
            return self.admit_all(now);
        }
        let mut told = Vec::new();
        while let Some(ticket) = self.queue.pop() {
            self.totals.refused += 1;
            let waiting = self.waiting.get_mut(&ticket).expect("each ticket in the queue is registered");
            told.extend(waiting.outcome.refuse(Refusal::Closed));
        }
        self.record_idle(|| now_us);
        told
    }

    pub(super) fn activity(&self) -> ClusterActivity {
        ClusterActivity { running: self.running, queued: self.queued(), idle_since: self.idle_since }
    }

    pub(super) fn snapshot(&self, now: Duration) -> AdmissionSnapshot {
        let queued = self.queue.ordered_items().into_iter().map(|ticket| {
            let waiting = &self.waiting[&ticket];
            let waited = now.saturating_sub(waiting.since);
            QueuedStatement { statement: waiting.statement, user: waiting.user, waited }
        });
        AdmissionSnapshot {
            limits: self.limits,
            mode: self.mode,
            running: self.running,
            queued: queued.collect(),
            totals: self.totals,
        }
    }

    /// Admits as many statements as there is room for. Returns their wakers.
    fn admit_all(&mut self, now: Duration) -> Vec<W> {
        std::iter::from_fn(|| self.admit_next(now)).collect()
    }

    /// Admits the next statement if there is room, otherwise the longest waiting superuser statement beyond the limit.
    /// Returns its waker.
    fn admit_next(&mut self, now: Duration) -> Option<W> {
        let ticket = match self.mode == AdmissionMode::Open && self.running < self.limits.running {
            true => self.queue.pop()?,
            false => self.next_superuser()?,
        };
        let waiting = self.waiting.get_mut(&ticket).expect("each ticket in the queue is registered");
        let waited = now.saturating_sub(waiting.since);
        let is_superuser = waiting.is_superuser;
        let waker = waiting.outcome.set(Outcome::Admitted { waited });
        self.count_running(is_superuser);
        self.totals.waited += 1;
        self.totals.total_wait += waited;
        self.totals.longest_wait = self.totals.longest_wait.max(waited);
        waker
    }

    /// Removes the longest waiting superuser statement from the queue, if one may exceed the limit.
    fn next_superuser(&mut self) -> Option<QueueTicket> {
        if !self.may_superuser_exceed_limit() {
            return None;
        }
        let is_next =
            |waiting: &WaitingStatement<W>| waiting.is_superuser && matches!(waiting.outcome, Outcome::Queued(_));
        let waiting = self.waiting.iter().filter(|(_, waiting)| is_next(waiting));
        let (ticket, user) =
            waiting.map(|(ticket, waiting)| (*ticket, waiting.user)).min_by_key(|(ticket, _)| *ticket)?;
        self.queue.remove(&user, ticket);
        Some(ticket)
    }

    /// Records the start of the idle time if nothing runs or waits.
    fn record_idle(&mut self, now_us: impl FnOnce() -> i64) {
        if self.running == 0 && self.queue.is_empty() && self.idle_since.is_none() {
            self.idle_since = Some(now_us());
        }
    }

    /// Whether nothing runs or waits and no entry is left over.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        self.running == 0
            && self.running_superusers == 0
            && self.waiting.is_empty()
            && self.queue.is_empty()
            && self.queue.is_clean()
    }

    fn queued(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }
}

impl<W> Outcome<W> {
    fn refuse(&mut self, refusal: Refusal) -> Option<W> {
        self.set(Outcome::Refused(refusal))
    }

    /// Sets the answer. Returns the waker; `None` if there was an answer already.
    fn set(&mut self, outcome: Outcome<W>) -> Option<W> {
        match std::mem::replace(self, outcome) {
            Outcome::Queued(waker) => Some(waker),
            Outcome::Admitted { .. } | Outcome::Refused(_) => None,
        }
    }
}
