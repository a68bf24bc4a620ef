//! Who owns parts of shards in a cluster of processes. A slot that comes later takes over what is hot in the caches of the others first; of a slot that
//! is to go the others take it over, and until they have, it goes on as before. Who takes the place of a worker that is still there takes over from that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{ClusterId, Worker, WorkerId, WorkerState};
use futures::future::{BoxFuture, join_all};

use crate::clusters::Clusters;

#[cfg(test)]
mod tests;

/// What is hot has changed hands after so long, however much of it has.
const TAKE_OVER_MAX: Duration = Duration::from_secs(30);

/// The slots of one cluster that own parts, those that are about to, and those that are about to own nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    own: BTreeSet<u32>,
    /// Whether they were told to take over.
    coming: BTreeMap<u32, bool>,
    /// Some of those that own parts.
    leaving: BTreeMap<u32, Leaving>,
    /// Workers in whose slot another works now.
    replaced: BTreeMap<WorkerId, Replaced>,
}

/// A slot that should be empty, and whose worker has what others will own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leaving {
    worker: WorkerId,
    /// Whether the others were told to take over.
    is_told: bool,
}

/// A worker that goes because another has its slot, and how far that one is with taking over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Replaced {
    slot: u32,
    is_told: bool,
    is_done: bool,
}

/// A cluster as it is, and as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// The slots that have a worker.
    serving: BTreeSet<u32>,
    /// Those beyond what there should be that have one still.
    beyond: BTreeMap<u32, WorkerId>,
    /// Those that are still there in a slot that has another, with their slots.
    replaced: BTreeMap<WorkerId, u32>,
    /// How many slots there should be.
    node_count: u32,
    is_awake: bool,
    was_asked: bool,
}

/// What is to change hands now.
#[derive(Debug, Default, PartialEq, Eq)]
struct HandOver {
    /// These take over from those that own parts.
    coming: Vec<u32>,
    /// From these those take over that stay.
    leaving: Vec<(u32, WorkerId)>,
    /// From these those take over that have their slots.
    replaced: Vec<(WorkerId, u32)>,
}

impl Owners {
    /// Takes note of how the cluster is. Those that come later take over first where others own parts and have been asked for them; those that go are
    /// taken over from where others stay.
    fn note(&mut self, seen: &Seen) {
        let Seen { serving, beyond, replaced, node_count, is_awake, was_asked } = seen;
        self.coming.retain(|slot, is_told| slot < node_count && (*is_told || serving.contains(slot)));
        let stays = self.own.iter().any(|slot| slot < node_count && serving.contains(slot));
        let can_leave = *is_awake && *was_asked && stays;
        self.leaving.retain(|slot, leaving| can_leave && beyond.get(slot) == Some(&leaving.worker));
        for (slot, worker) in beyond.iter().filter(|(slot, _)| can_leave && self.own.contains(*slot)) {
            self.leaving.entry(*slot).or_insert(Leaving { worker: *worker, is_told: false });
        }
        self.replaced.retain(|worker, _| can_leave && replaced.contains_key(worker));
        for (worker, slot) in replaced.iter().filter(|(_, slot)| can_leave && self.own.contains(*slot)) {
            self.replaced.entry(*worker).or_insert(Replaced { slot: *slot, is_told: false, is_done: false });
        }
        self.own.retain(|slot| slot < node_count || self.leaving.contains_key(slot));
        let is_cold = !was_asked || self.own.is_disjoint(serving);
        if is_cold {
            self.own.extend(serving);
            self.coming.clear();
            return;
        }
        for slot in serving.iter().filter(|slot| !self.own.contains(*slot)) {
            self.coming.entry(*slot).or_insert(false);
        }
    }

    /// What has not been told yet, and is from now on.
    fn begin(&mut self) -> HandOver {
        let is_new = |is_told: &mut bool| !std::mem::replace(is_told, true);
        let coming = self.coming.iter_mut().filter_map(|(slot, is_told)| is_new(is_told).then_some(*slot));
        let leaving = self.leaving.iter_mut();
        let leaving = leaving.filter_map(|(slot, it)| is_new(&mut it.is_told).then_some((*slot, it.worker)));
        let replaced = self.replaced.iter_mut();
        let replaced = replaced.filter_map(|(worker, it)| is_new(&mut it.is_told).then_some((*worker, it.slot)));
        HandOver { coming: coming.collect(), leaving: leaving.collect(), replaced: replaced.collect() }
    }

    /// The slots that own parts and go on to.
    fn staying(&self) -> impl Iterator<Item = u32> {
        self.own.iter().copied().filter(|slot| !self.leaving.contains_key(slot))
    }

    /// The workers that others take over from.
    fn hand_over(&self) -> impl Iterator<Item = WorkerId> {
        let replaced = self.replaced.iter().filter(|(_, it)| !it.is_done).map(|(worker, _)| *worker);
        self.leaving.values().map(|leaving| leaving.worker).chain(replaced)
    }

    /// A slot owns its parts now.
    fn came(&mut self, slot: u32) {
        if self.coming.remove(&slot).is_some() {
            self.own.insert(slot);
        }
    }

    /// A slot owns nothing any more, unless it is to stay after all.
    fn left(&mut self, slot: u32, worker: WorkerId) {
        if self.leaving.get(&slot).is_some_and(|leaving| leaving.worker == worker) {
            self.leaving.remove(&slot);
            self.own.remove(&slot);
        }
    }

    /// Who has a worker's slot has what that one had.
    fn was_replaced(&mut self, worker: WorkerId) {
        if let Some(replaced) = self.replaced.get_mut(&worker) {
            replaced.is_done = true;
        }
    }
}

impl Clusters {
    /// The workers of a cluster that get statements: those whose slots own parts.
    pub(crate) fn owning(&self, cluster: ClusterId) -> Vec<Worker> {
        let serving = self.plane.serving(cluster);
        let all = self.owners.lock();
        let Some(owners) = all.get(&cluster) else { return serving.to_vec() };
        let mut owning: Vec<Worker> =
            serving.iter().filter(|worker| owners.own.contains(&worker.slot)).cloned().collect();
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
        // Somebody has to.
        if owning.is_empty() { serving.to_vec() } else { owning }
    }

    /// Whether a worker gets statements, as far as that is for its slot to say.
    pub(crate) fn owns(&self, worker: &Worker) -> bool {
        self.owners.lock().get(&worker.cluster).is_none_or(|owners| !owners.coming.contains_key(&worker.slot))
    }

    /// Takes note of who comes and who goes; who goes stays from now on until others have what is hot of it.
    pub(crate) fn note_owners(&self) {
        let Some(processes) = &self.processes else { return };
        let (desired, workers) = (self.plane.desired(), self.plane.workers());
        let mut all = self.owners.lock();
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
            let seen = Seen {
                serving: serving.iter().map(|worker| worker.slot).collect(),
                beyond: there()
                    .filter(|worker| node_count <= worker.slot)
                    .map(|worker| (worker.slot, worker.id))
                    .collect(),
                replaced: there().filter(is_replaced).map(|worker| (worker.id, worker.slot)).collect(),
                node_count,
                is_awake: !cluster.suspended,
                was_asked: self.gate(cluster.id).is_some_and(|gate| 0 < gate.snapshot().totals.admitted),
            };
            all.entry(cluster.id).or_default().note(&seen);
        }
        processes.hand_over(&all.values().flat_map(Owners::hand_over).collect());
    }

    /// Has what is hot change hands where that was not said yet.
    pub(crate) fn begin_hand_overs(self: &Arc<Self>) {
        let mut all = self.owners.lock();
        for (cluster, owners) in all.iter_mut() {
            let HandOver { coming, leaving, replaced } = owners.begin();
            let known = self.plane.workers();
            let serving = self.plane.serving(*cluster);
            let stays: Vec<Worker> =
                serving.iter().filter(|worker| owners.own.contains(&worker.slot)).cloned().collect();
            for slot in coming {
                let Some(worker) = serving.iter().find(|worker| worker.slot == slot) else {
                    // It has gone just now, and is as new when it is back.
                    owners.coming.remove(&slot);
                    continue;
                };
                let then = owners.staying().chain(owners.coming.keys().copied()).collect();
                let taking = self.taking_over(&[worker.id], &stays, then);
                self.until_taken_over(taking, *cluster, move |owners| owners.came(slot));
            }
            for (old, slot) in replaced {
                let Some(worker) = serving.iter().find(|worker| worker.slot == slot) else { continue };
                let from: Vec<Worker> = known.iter().filter(|worker| worker.id == old).cloned().collect();
                let taking = self.taking_over(&[worker.id], &from, owners.staying().collect());
                self.until_taken_over(taking, *cluster, move |owners| owners.was_replaced(old));
            }
            if !leaving.is_empty() {
                let from: Vec<Worker> =
                    known.iter().filter(|one| leaving.iter().any(|(_, worker)| *worker == one.id)).cloned().collect();
                let heirs: Vec<WorkerId> = stays.iter().map(|worker| worker.id).collect();
                let taking = self.taking_over(&heirs, &from, owners.staying().collect());
                self.until_taken_over(taking, *cluster, move |owners| {
                    leaving.iter().for_each(|(slot, worker)| owners.left(*slot, *worker));
                });
            }
        }
    }

    /// Completes when these have taken over from those what is theirs once parts are placed among the slots `then`.
    fn taking_over(&self, heirs: &[WorkerId], from: &[Worker], then: Vec<u32>) -> BoxFuture<'static, ()> {
        let Some(processes) = &self.processes else { return Box::pin(std::future::ready(())) };
        let each: Vec<_> = heirs.iter().map(|heir| processes.take_over(*heir, from, then.clone())).collect();
        Box::pin(async move { drop(join_all(each).await) })
    }

    /// Moves owners once `taking` has ended, or has taken long enough.
    fn until_taken_over(
        self: &Arc<Self>,
        taking: BoxFuture<'static, ()>,
        cluster: ClusterId,
        then: impl FnOnce(&mut Owners) + Send + 'static,
    ) {
        let clusters = Arc::clone(self);
        drop(tokio::spawn(async move {
            tokio::select! {
                () = taking => {}
                () = clusters.clock.sleep(TAKE_OVER_MAX) => tracing::warn!(%cluster, "what is hot could not be taken over in time"),
            }
            if let Some(owners) = clusters.owners.lock().get_mut(&cluster) {
                then(owners);
            }
            if let Some(processes) = &clusters.processes {
                // Who has left may go.
                processes.changes().advance();
            }
        }));
    }
}
