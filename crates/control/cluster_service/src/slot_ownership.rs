//! Ownership of parts of shards in a cluster of worker processes, and cache hand-over when it changes.
//!
//! A new slot first warms its cache from the others and owns its parts afterwards. A slot that is removed keeps its
//! parts until the others have fetched its warm blocks. A worker that replaces one that still runs in the same slot
//! fetches the blocks of that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{ClusterId, Worker, WorkerId, WorkerState};
use futures::future::{BoxFuture, join_all};

use crate::clusters::Clusters;

#[cfg(test)]
mod tests;

/// Time limit of a cache hand-over; ownership changes then even if it is incomplete.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);

/// Ownership in one cluster: the slots that own parts, and those that are about to gain or lose them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotOwnership {
    /// Slots that own parts.
    owning: BTreeSet<u32>,
    /// New slots that own nothing yet, with whether their hand-over has started.
    joining: BTreeMap<u32, bool>,
    /// Slots in `own` that are being removed.
    leaving: BTreeMap<u32, LeavingSlot>,
    /// Workers that still run although another serves their slot.
    replaced: BTreeMap<WorkerId, ReplacedWorker>,
}

/// Slot that is being removed while others fetch the warm blocks of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LeavingSlot {
    worker: WorkerId,
    /// Whether the hand-over has started.
    is_started: bool,
}

/// Hand-over from a worker to the one that replaces it in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReplacedWorker {
    slot: u32,
    /// Whether the hand-over has started.
    is_started: bool,
    /// Whether the hand-over has ended.
    is_done: bool,
}

/// Observed and desired state of a cluster, as far as ownership depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClusterObservation {
    /// Slots with a serving worker.
    serving: BTreeSet<u32>,
    /// Slots from `node_count` on that still have a worker.
    surplus: BTreeMap<u32, WorkerId>,
    /// Workers that still run although another serves their slot, with the slot.
    replaced: BTreeMap<WorkerId, u32>,
    /// Desired number of slots.
    node_count: u32,
    /// Whether the cluster is not suspended.
    is_awake: bool,
    /// Whether the cluster has run any statement, so that caches can be warm.
    has_run_statements: bool,
}

/// Hand-overs to start.
#[derive(Debug, Default, PartialEq, Eq)]
struct Handovers {
    /// Slots that fetch blocks from all owners.
    joining: Vec<u32>,
    /// Slots whose blocks all remaining owners fetch.
    leaving: Vec<(u32, WorkerId)>,
    /// Workers whose blocks the new workers of their slots fetch.
    replaced: Vec<(WorkerId, u32)>,
}

impl SlotOwnership {
    /// Updates the ownership from the state of the cluster. A new slot needs a hand-over if other slots own parts and
    /// the cluster has run statements; a removed one does if others remain.
    fn update(&mut self, seen: &ClusterObservation) {
        let ClusterObservation {
            serving,
            surplus: beyond,
            replaced,
            node_count,
            is_awake,
            has_run_statements: was_asked,
        } = seen;
        self.joining.retain(|slot, is_told| slot < node_count && (*is_told || serving.contains(slot)));
        let stays = self.owning.iter().any(|slot| slot < node_count && serving.contains(slot));
        let can_leave = *is_awake && *was_asked && stays;
        self.leaving.retain(|slot, leaving| can_leave && beyond.get(slot) == Some(&leaving.worker));
        for (slot, worker) in beyond.iter().filter(|(slot, _)| can_leave && self.owning.contains(*slot)) {
            self.leaving.entry(*slot).or_insert(LeavingSlot { worker: *worker, is_started: false });
        }
        self.replaced.retain(|worker, _| can_leave && replaced.contains_key(worker));
        for (worker, slot) in replaced.iter().filter(|(_, slot)| can_leave && self.owning.contains(*slot)) {
            self.replaced.entry(*worker).or_insert(ReplacedWorker { slot: *slot, is_started: false, is_done: false });
        }
        self.owning.retain(|slot| slot < node_count || self.leaving.contains_key(slot));
        let is_cold = !was_asked || self.owning.is_disjoint(serving);
        if is_cold {
            self.owning.extend(serving);
            self.joining.clear();
            return;
        }
        for slot in serving.iter().filter(|slot| !self.owning.contains(*slot)) {
            self.joining.entry(*slot).or_insert(false);
        }
    }

    /// Returns the hand-overs that have not started, and marks them as started.
    fn start_handovers(&mut self) -> Handovers {
        let is_new = |is_told: &mut bool| !std::mem::replace(is_told, true);
        let coming = self.joining.iter_mut().filter_map(|(slot, is_told)| is_new(is_told).then_some(*slot));
        let leaving = self.leaving.iter_mut();
        let leaving = leaving.filter_map(|(slot, it)| is_new(&mut it.is_started).then_some((*slot, it.worker)));
        let replaced = self.replaced.iter_mut();
        let replaced = replaced.filter_map(|(worker, it)| is_new(&mut it.is_started).then_some((*worker, it.slot)));
        Handovers { joining: coming.collect(), leaving: leaving.collect(), replaced: replaced.collect() }
    }

    /// Iterates over the slots that own parts and are not being removed.
    fn staying_slots(&self) -> impl Iterator<Item = u32> {
        self.owning.iter().copied().filter(|slot| !self.leaving.contains_key(slot))
    }

    /// Iterates over the workers that others fetch blocks from.
    fn handing_over(&self) -> impl Iterator<Item = WorkerId> {
        let replaced = self.replaced.iter().filter(|(_, it)| !it.is_done).map(|(worker, _)| *worker);
        self.leaving.values().map(|leaving| leaving.worker).chain(replaced)
    }

    /// Ends the hand-over to a new slot, which owns its parts from now on.
    fn complete_joining(&mut self, slot: u32) {
        if self.joining.remove(&slot).is_some() {
            self.owning.insert(slot);
        }
    }

    /// Ends the hand-over from a removed slot, which owns nothing from now on, unless the removal was revoked.
    fn complete_leaving(&mut self, slot: u32, worker: WorkerId) {
        if self.leaving.get(&slot).is_some_and(|leaving| leaving.worker == worker) {
            self.leaving.remove(&slot);
            self.owning.remove(&slot);
        }
    }

    /// Ends the hand-over from a replaced worker.
    fn complete_replacement(&mut self, worker: WorkerId) {
        if let Some(replaced) = self.replaced.get_mut(&worker) {
            replaced.is_done = true;
        }
    }
}

impl Clusters {
    /// Returns the workers of a cluster that get statements: those whose slots own parts.
    pub(crate) fn owning_workers(&self, cluster: ClusterId) -> Vec<Worker> {
        let serving = self.plane.serving(cluster);
        let all = self.slot_ownership.lock();
        let Some(owners) = all.get(&cluster) else { return serving.to_vec() };
        let mut owning: Vec<Worker> =
            serving.iter().filter(|worker| owners.owning.contains(&worker.slot)).cloned().collect();
        if !owners.leaving.is_empty() && !owning.is_empty() {
            let goes_on = |worker: &&Worker| {
                let leaving = owners.leaving.get(&worker.slot).filter(|_| worker.cluster == cluster);
                let is_it = leaving.is_some_and(|leaving| leaving.worker == worker.id);
                is_it && worker.state == WorkerState::Ready && !worker.hung
            };
            let known = self.plane.workers();
            let leaving: Vec<&Worker> = known.iter().filter(goes_on).collect();
            owning.extend(leaving.into_iter().filter(|it| serving.iter().all(|one| one.id != it.id)).cloned());
        }
        // Without any owner all serving workers get statements.
        if owning.is_empty() { serving.to_vec() } else { owning }
    }

    /// Whether a worker's slot owns its parts already, that is, does not wait for a hand-over.
    pub(crate) fn owns_parts(&self, worker: &Worker) -> bool {
        self.slot_ownership.lock().get(&worker.cluster).is_none_or(|owners| !owners.joining.contains_key(&worker.slot))
    }

    /// Updates the ownership of all clusters from the control plane, and marks the workers that hand over their caches,
    /// so that reconciliation does not stop them meanwhile.
    pub(crate) fn update_ownership(&self) {
        let Some(processes) = &self.processes else { return };
        let (desired, workers) = (self.plane.desired(), self.plane.workers());
        let mut all = self.slot_ownership.lock();
        all.retain(|id, _| desired.cluster(*id).is_some());
        for cluster in desired.clusters() {
            let (node_count, serving) = (cluster.spec.node_count, self.plane.serving(cluster.id));
            let is_there = |worker: &&Worker| {
                let is_there = matches!(worker.state, WorkerState::Ready | WorkerState::Draining) && !worker.hung;
                worker.cluster == cluster.id && is_there && worker.address.is_some()
            };
            let there = || workers.iter().filter(is_there);
            let is_replaced = |old: &&Worker| {
                let mut others =
                    serving.iter().filter(|worker| worker.slot == old.slot && worker.version == old.version);
                others.any(|worker| worker.id != old.id && worker.address.is_some())
            };
            let seen = ClusterObservation {
                serving: serving.iter().map(|worker| worker.slot).collect(),
                surplus: there()
                    .filter(|worker| node_count <= worker.slot)
                    .map(|worker| (worker.slot, worker.id))
                    .collect(),
                replaced: there().filter(is_replaced).map(|worker| (worker.id, worker.slot)).collect(),
                node_count,
                is_awake: !cluster.suspended,
                has_run_statements: self.admission(cluster.id).is_some_and(|gate| 0 < gate.snapshot().totals.admitted),
            };
            all.entry(cluster.id).or_default().update(&seen);
        }
        processes.set_handing_over(&all.values().flat_map(SlotOwnership::handing_over).collect());
    }

    /// Starts all hand-overs that have not started.
    pub(crate) fn start_handovers(self: &Arc<Self>) {
        let mut all = self.slot_ownership.lock();
        for (cluster, owners) in all.iter_mut() {
            let Handovers { joining: coming, leaving, replaced } = owners.start_handovers();
            let known = self.plane.workers();
            let serving = self.plane.serving(*cluster);
            let stays: Vec<Worker> =
                serving.iter().filter(|worker| owners.owning.contains(&worker.slot)).cloned().collect();
            for slot in coming {
                let Some(worker) = serving.iter().find(|worker| worker.slot == slot) else {
                    // The worker has just ended; its replacement starts over.
                    owners.joining.remove(&slot);
                    continue;
                };
                let then = owners.staying_slots().chain(owners.joining.keys().copied()).collect();
                let taking = self.hand_over_caches(&[worker.id], &stays, then);
                self.finish_handover(taking, *cluster, move |owners| owners.complete_joining(slot));
            }
            for (old, slot) in replaced {
                let Some(worker) = serving.iter().find(|worker| worker.slot == slot) else { continue };
                let from: Vec<Worker> = known.iter().filter(|worker| worker.id == old).cloned().collect();
                let taking = self.hand_over_caches(&[worker.id], &from, owners.staying_slots().collect());
                self.finish_handover(taking, *cluster, move |owners| owners.complete_replacement(old));
            }
            if !leaving.is_empty() {
                let from: Vec<Worker> =
                    known.iter().filter(|one| leaving.iter().any(|(_, worker)| *worker == one.id)).cloned().collect();
                let heirs: Vec<WorkerId> = stays.iter().map(|worker| worker.id).collect();
                let taking = self.hand_over_caches(&heirs, &from, owners.staying_slots().collect());
                self.finish_handover(taking, *cluster, move |owners| {
                    leaving.iter().for_each(|(slot, worker)| owners.complete_leaving(*slot, *worker));
                });
            }
        }
    }

    /// Lets the workers `heirs` fetch from the workers `from` the blocks that they own once parts are placed among the
    /// slots `then`. Completes when all have reported the end.
    fn hand_over_caches(&self, heirs: &[WorkerId], from: &[Worker], then: Vec<u32>) -> BoxFuture<'static, ()> {
        let Some(processes) = &self.processes else { return Box::pin(std::future::ready(())) };
        let each: Vec<_> = heirs.iter().map(|heir| processes.start_handover(*heir, from, then.clone())).collect();
        Box::pin(async move { drop(join_all(each).await) })
    }

    /// Spawns a task that calls `then` once the hand-over `taking` has ended or timed out.
    fn finish_handover(
        self: &Arc<Self>,
        taking: BoxFuture<'static, ()>,
        cluster: ClusterId,
        then: impl FnOnce(&mut SlotOwnership) + Send + 'static,
    ) {
        let clusters = Arc::clone(self);
        drop(tokio::spawn(async move {
            tokio::select! {
                () = taking => {}
                () = clusters.clock.sleep(HANDOVER_TIMEOUT) => tracing::warn!(
                    %cluster, "cache warm-up timed out; shard ownership moves with a cold cache"
                ),
            }
            if let Some(owners) = clusters.slot_ownership.lock().get_mut(&cluster) {
                then(owners);
            }
            if let Some(processes) = &clusters.processes {
                // Reconciliation may stop the workers now.
                processes.changes().advance();
            }
        }));
    }
}
