//! One slot of a cluster: which of its workers stay, and whether another one starts.

use std::time::Duration;

use super::backoff;
use super::{Action, Settings};
use crate::stop_reason::StopReason;
use crate::worker::{Worker, WorkerSpec, WorkerState};

/// A slot's workers, and what is known about them now.
pub(super) struct Slot<'a> {
    workers: &'a [&'a Worker],
    now: Duration,
    settings: &'a Settings,
}

impl<'a> Slot<'a> {
    pub(super) fn new(workers: &'a [&'a Worker], now: Duration, settings: &'a Settings) -> Slot<'a> {
        Slot { workers, now, settings }
    }

    /// Whether a worker on old hardware and one on the new are both there. Who has not answered for long does not count: nobody knows
    /// for how long it will be there.
    pub(super) fn is_doubled(&self, spec: &WorkerSpec) -> bool {
        let on = |is_new: bool| {
            self.workers.iter().any(|worker| {
                worker.state != WorkerState::Gone
                    && (worker.spec.hardware_instance == spec.hardware_instance) == is_new
                    && self.now.saturating_sub(worker.heard)
                        < self.settings.replace_hung_after.max(self.settings.start_timeout)
            })
        };
        on(true) && on(false)
    }

    /// Nobody should be here. Who hands over what is hot may stay until it has.
    pub(super) fn empty(&self, actions: &mut Vec<Action>) {
        for worker in self.workers {
            match worker.state {
                WorkerState::Gone => {
                    if self.settings.keep_gone <= self.age(worker) {
                        actions.push(Action::Forget { worker: worker.id });
                    }
                }
                _ if self.is_ended(worker, actions) || worker.hands_over => {}
                _ => retire(worker, StopReason::Unwanted, actions),
            }
        }
    }

    /// One worker like `spec` should be here. Says whether it is to be started; `surge` is how many more may start beside one on old
    /// hardware.
    pub(super) fn fill(&self, spec: &WorkerSpec, surge: &mut usize, actions: &mut Vec<Action>) -> bool {
        let (mut current, mut outdated) = (Vec::new(), Vec::new());
        for worker in self.workers.iter().copied().filter(|worker| worker.state != WorkerState::Gone) {
            if self.is_ended(worker, actions) || worker.state == WorkerState::Draining {
                continue;
            }
            if worker.is_other_version(&self.settings.version) {
                retire(worker, StopReason::OtherVersion, actions);
            } else if worker.spec.hardware_instance == spec.hardware_instance {
                current.push(worker);
            } else {
                outdated.push(worker);
            }
        }
        // Who is ready stays, of those the oldest: it has the warmest cache.
        current.sort_by_key(|worker| (worker.hung, worker.state != WorkerState::Ready, worker.since, worker.id));
        let stays = current.first().copied();
        for surplus in current.iter().skip(1) {
            retire(surplus, StopReason::Unwanted, actions);
        }
        self.forget(stays, actions);
        if let Some(worker) = stays {
            if worker.spec != *spec {
                actions.push(Action::Configure { worker: worker.id, spec: spec.clone() });
            }
            let is_serving = worker.state == WorkerState::Ready && !worker.hung;
            for old in outdated.iter().filter(|old| is_serving || old.state != WorkerState::Ready) {
                retire(old, StopReason::Unwanted, actions);
            }
            return false;
        }
        if !self.is_due() {
            return false;
        }
        let still_serving = outdated.iter().any(|old| old.state == WorkerState::Ready);
        if still_serving {
            if *surge == 0 {
                return false;
            }
            *surge -= 1;
        }
        for old in outdated.iter().filter(|old| old.state != WorkerState::Ready) {
            retire(old, StopReason::Unwanted, actions);
        }
        true
    }

    /// Ends a worker that has drained, did not come up or does not answer, and says whether it was such a one. What hangs for less long
    /// is marked.
    fn is_ended(&self, worker: &Worker, actions: &mut Vec<Action>) -> bool {
        let silent = self.now.saturating_sub(worker.heard);
        let reason = match worker.state {
            WorkerState::Gone => return false,
            WorkerState::Starting if self.settings.start_timeout <= self.age(worker) => StopReason::NotStarted,
            WorkerState::Starting => return false,
            WorkerState::Draining if worker.running == 0 && !worker.hands_over => StopReason::Drained,
            WorkerState::Draining if self.settings.drain_grace <= self.age(worker) => StopReason::GraceOver,
            WorkerState::Draining | WorkerState::Ready => {
                if self.settings.hung_after <= silent && !worker.hung {
                    actions.push(Action::MarkHung { worker: worker.id });
                }
                if silent < self.settings.replace_hung_after {
                    return false;
                }
                StopReason::Hung
            }
        };
        actions.push(Action::Stop { worker: worker.id, reason });
        true
    }

    /// Whether the slot's failures are long enough ago for another try.
    fn is_due(&self) -> bool {
        let failures: Vec<Duration> = self.workers.iter().filter_map(|worker| self.failure(worker)).collect();
        let last = failures.iter().max();
        last.is_none_or(|last| backoff::wait(failures.len(), self.settings) <= self.now.saturating_sub(*last))
    }

    /// When the worker failed, if it did. One that cannot be reached counts before it is seen to be gone, and one of another version fails
    /// by it as soon as that is known: what starts it would start it again and again.
    fn failure(&self, worker: &Worker) -> Option<Duration> {
        if worker.is_other_version(&self.settings.version) {
            return Some(worker.since);
        }
        let end = match worker.state {
            WorkerState::Gone => return worker.failed.then_some(worker.since),
            WorkerState::Starting => worker.since + self.settings.start_timeout,
            WorkerState::Ready | WorkerState::Draining => worker.heard + self.settings.replace_hung_after,
        };
        (end <= self.now).then_some(end)
    }

    /// Forgets who is gone: who went as told, after a while; who failed, when the slot has been well for long, or has failed so often since
    /// that one more makes no difference.
    fn forget(&self, stays: Option<&Worker>, actions: &mut Vec<Action>) {
        let is_well = stays.is_some_and(|worker| {
            worker.state == WorkerState::Ready && !worker.hung && self.settings.stable_after <= self.age(worker)
        });
        let gone = self.workers.iter().filter(|worker| worker.state == WorkerState::Gone);
        let (mut failed, went): (Vec<&Worker>, Vec<&Worker>) =
            gone.copied().partition(|worker| self.failure(worker).is_some());
        failed.sort_by_key(|worker| (worker.since, worker.id));
        let kept = if is_well { 0 } else { backoff::failures_kept(self.settings) };
        let too_many = failed.len().saturating_sub(kept);
        let long_gone = went.into_iter().filter(|worker| self.settings.keep_gone <= self.age(worker));
        let forgotten = failed.into_iter().take(too_many).chain(long_gone);
        actions.extend(forgotten.map(|worker| Action::Forget { worker: worker.id }));
    }

    /// How long the worker has been in its state.
    fn age(&self, worker: &Worker) -> Duration {
        self.now.saturating_sub(worker.since)
    }
}

/// Lets a worker end what it does, or ends it where it does nothing yet.
fn retire(worker: &Worker, reason: StopReason, actions: &mut Vec<Action>) {
    match worker.state {
        WorkerState::Starting => actions.push(Action::Stop { worker: worker.id, reason }),
        WorkerState::Ready => actions.push(Action::Drain { worker: worker.id }),
        WorkerState::Draining | WorkerState::Gone => {}
    }
}
