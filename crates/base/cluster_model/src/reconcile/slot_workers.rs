//! Reconciliation of one slot of a cluster: which of its workers stay, and whether a new one starts.

use std::time::Duration;

use super::restart_backoff;
use super::{Action, ReconcileSettings};
use crate::stop_reason::StopReason;
use crate::worker::{Worker, WorkerSpec, WorkerState};

/// Workers of a slot, with the time and settings of the pass.
pub(super) struct SlotReconciler<'a> {
    workers: &'a [&'a Worker],
    now: Duration,
    settings: &'a ReconcileSettings,
}

impl<'a> SlotReconciler<'a> {
    pub(super) fn new(workers: &'a [&'a Worker], now: Duration, settings: &'a ReconcileSettings) -> SlotReconciler<'a> {
        SlotReconciler { workers, now, settings }
    }

    /// Whether the slot has a worker on old and one on new hardware. Workers that have been silent for long do not
    /// count, because it is unknown when they end.
    pub(super) fn has_old_and_new_worker(&self, spec: &WorkerSpec) -> bool {
        let on = |is_new: bool| {
            self.workers.iter().any(|worker| {
                worker.state != WorkerState::Gone
                    && (worker.spec.hardware_instance == spec.hardware_instance) == is_new
                    && self.now.saturating_sub(worker.last_heartbeat)
                        < self.settings.replace_hung_after.max(self.settings.start_timeout)
            })
        };
        on(true) && on(false)
    }

    /// Removes all workers of a slot that should be empty. A worker that hands over its cache stays until that is done.
    pub(super) fn remove_workers(&self, actions: &mut Vec<Action>) {
        for worker in self.workers {
            match worker.state {
                WorkerState::Gone => {
                    if self.settings.ended_worker_retention <= self.age(worker) {
                        actions.push(Action::Forget { worker: worker.id });
                    }
                }
                _ if self.stop_if_ended(worker, actions) || worker.is_handing_over => {}
                _ => drain_or_stop(worker, StopReason::Unwanted, actions),
            }
        }
    }

    /// Reconciles a slot that should have one worker with this `spec`, and returns whether to start it. `surge` is the
    /// number of workers that may still start beside one on old hardware.
    pub(super) fn ensure_worker(&self, spec: &WorkerSpec, surge: &mut usize, actions: &mut Vec<Action>) -> bool {
        let (mut current, mut outdated) = (Vec::new(), Vec::new());
        for worker in self.workers.iter().copied().filter(|worker| worker.state != WorkerState::Gone) {
            if self.stop_if_ended(worker, actions) || worker.state == WorkerState::Draining {
                continue;
            }
            if worker.is_other_version(&self.settings.version) {
                drain_or_stop(worker, StopReason::OtherVersion, actions);
            } else if worker.spec.hardware_instance == spec.hardware_instance {
                current.push(worker);
            } else {
                outdated.push(worker);
            }
        }
        // Prefer a ready worker, then the oldest, because it has the warmest cache.
        current.sort_by_key(|worker| (worker.hung, worker.state != WorkerState::Ready, worker.state_since, worker.id));
        let stays = current.first().copied();
        for surplus in current.iter().skip(1) {
            drain_or_stop(surplus, StopReason::Unwanted, actions);
        }
        self.forget_ended(stays, actions);
        if let Some(worker) = stays {
            if worker.spec != *spec {
                actions.push(Action::Configure { worker: worker.id, spec: spec.clone() });
            }
            let is_serving = worker.state == WorkerState::Ready && !worker.hung;
            for old in outdated.iter().filter(|old| is_serving || old.state != WorkerState::Ready) {
                drain_or_stop(old, StopReason::Unwanted, actions);
            }
            return false;
        }
        if !self.is_backoff_over() {
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
            drain_or_stop(old, StopReason::Unwanted, actions);
        }
        true
    }

    /// Stops a worker that is drained, did not join in time or has been silent for too long, and returns whether it
    /// did. Marks one that has been silent for a shorter time as hung.
    fn stop_if_ended(&self, worker: &Worker, actions: &mut Vec<Action>) -> bool {
        let silent = self.now.saturating_sub(worker.last_heartbeat);
        let reason = match worker.state {
            WorkerState::Gone => return false,
            WorkerState::Starting if self.settings.start_timeout <= self.age(worker) => StopReason::JoinTimeout,
            WorkerState::Starting => return false,
            WorkerState::Draining if worker.running == 0 && !worker.is_handing_over => StopReason::Drained,
            WorkerState::Draining if self.settings.drain_grace <= self.age(worker) => StopReason::GracePeriodExceeded,
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

    /// Whether the backoff after the slot's failures is over.
    fn is_backoff_over(&self) -> bool {
        let failures: Vec<Duration> = self.workers.iter().filter_map(|worker| self.failure_time(worker)).collect();
        let last = failures.iter().max();
        last.is_none_or(|last| {
            restart_backoff::restart_delay(failures.len(), self.settings) <= self.now.saturating_sub(*last)
        })
    }

    /// Returns the time at which the worker failed, if it did. An unreachable worker counts before its end is observed.
    /// A worker of another version counts as failed as soon as its version is known, because its replacement would
    /// probably have the same version.
    fn failure_time(&self, worker: &Worker) -> Option<Duration> {
        if worker.is_other_version(&self.settings.version) {
            return Some(worker.state_since);
        }
        let end = match worker.state {
            WorkerState::Gone => return worker.failed.then_some(worker.state_since),
            WorkerState::Starting => worker.state_since + self.settings.start_timeout,
            WorkerState::Ready | WorkerState::Draining => worker.last_heartbeat + self.settings.replace_hung_after,
        };
        (end <= self.now).then_some(end)
    }

    /// Forgets ended workers: regularly stopped ones after `ended_worker_retention`; failed ones once the slot's worker is stable,
    /// or when later failures have reached the longest backoff already.
    fn forget_ended(&self, stays: Option<&Worker>, actions: &mut Vec<Action>) {
        let is_well = stays.is_some_and(|worker| {
            worker.state == WorkerState::Ready && !worker.hung && self.settings.stable_after <= self.age(worker)
        });
        let gone = self.workers.iter().filter(|worker| worker.state == WorkerState::Gone);
        let (mut failed, went): (Vec<&Worker>, Vec<&Worker>) =
            gone.copied().partition(|worker| self.failure_time(worker).is_some());
        failed.sort_by_key(|worker| (worker.state_since, worker.id));
        let kept = if is_well { 0 } else { restart_backoff::remembered_failures_max(self.settings) };
        let too_many = failed.len().saturating_sub(kept);
        let long_gone = went.into_iter().filter(|worker| self.settings.ended_worker_retention <= self.age(worker));
        let forgotten = failed.into_iter().take(too_many).chain(long_gone);
        actions.extend(forgotten.map(|worker| Action::Forget { worker: worker.id }));
    }

    /// Returns the time since the worker's last change of state.
    fn age(&self, worker: &Worker) -> Duration {
        self.now.saturating_sub(worker.state_since)
    }
}

/// Drains a ready worker; stops a starting one.
fn drain_or_stop(worker: &Worker, reason: StopReason, actions: &mut Vec<Action>) {
    match worker.state {
        WorkerState::Starting => actions.push(Action::Stop { worker: worker.id, reason }),
        WorkerState::Ready => actions.push(Action::Drain { worker: worker.id }),
        WorkerState::Draining | WorkerState::Gone => {}
    }
}
