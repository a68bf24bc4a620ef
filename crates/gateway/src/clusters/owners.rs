//! Who owns parts of shards in a cluster of processes: a slot that comes later takes over what is hot in the caches of the others first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::{ClusterId, ControlPlane, Worker};

use super::Clusters;

/// A slot owns parts after so long, whatever it has taken over by then.
const TAKE_OVER_MAX: Duration = Duration::from_secs(30);

/// The slots of one cluster that own parts, and those that are about to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    own: BTreeSet<u32>,
    coming: BTreeSet<u32>,
}

impl Owners {
    /// Takes note of the slots that have a worker now and of how many there should be; gives those that have to take over from others first. They do
    /// where others own parts and have been asked for them.
    fn note(&mut self, serving: &BTreeSet<u32>, node_count: u32, was_asked: bool) -> Vec<u32> {
        self.own.retain(|slot| *slot < node_count);
        self.coming.retain(|slot| *slot < node_count);
        let is_cold = !was_asked || self.own.is_disjoint(serving);
        if is_cold {
            self.own.extend(serving);
            self.coming.clear();
            return Vec::new();
        }
        let new: Vec<u32> =
            serving.iter().copied().filter(|slot| !self.own.contains(slot) && !self.coming.contains(slot)).collect();
        self.coming.extend(&new);
        new
    }

    /// A slot owns its parts now.
    fn came(&mut self, slot: u32) {
        if self.coming.remove(&slot) {
            self.own.insert(slot);
        }
    }
}

impl Clusters {
    /// The workers of a cluster that get statements: those whose slots own parts.
    pub(super) fn owning(&self, cluster: ClusterId) -> Vec<Worker> {
        let serving = self.plane.serving(cluster);
        let owners = self.owners.lock();
        let owns = |worker: &&Worker| owners.get(&cluster).is_none_or(|owners| owners.own.contains(&worker.slot));
        let owning: Vec<Worker> = serving.iter().filter(owns).cloned().collect();
        // Somebody has to.
        if owning.is_empty() { serving.to_vec() } else { owning }
    }

    /// Whether a worker gets statements, as far as that is for its slot to say.
    pub(super) fn owns(&self, worker: &Worker) -> bool {
        self.owners.lock().get(&worker.cluster).is_none_or(|owners| !owners.coming.contains(&worker.slot))
    }

    /// Looks which slots are new, and has them take over what they will own.
    pub(super) fn move_owners(self: &Arc<Self>) {
        let Some(processes) = &self.processes else { return };
        let desired = self.plane.desired();
        let mut all = self.owners.lock();
        all.retain(|id, _| desired.cluster(*id).is_some());
        for cluster in desired.clusters() {
            let serving = self.plane.serving(cluster.id);
            let workers: BTreeMap<u32, &Worker> = serving.iter().map(|worker| (worker.slot, worker)).collect();
            let was_asked = self.gate(cluster.id).is_some_and(|gate| 0 < gate.snapshot().totals.admitted);
            let owners = all.entry(cluster.id).or_default();
            let slots = workers.keys().copied().collect();
            for slot in owners.note(&slots, cluster.spec.node_count, was_asked) {
                let from: Vec<Worker> =
                    owners.own.iter().filter_map(|own| Some((*workers.get(own)?).clone())).collect();
                let then: Vec<u32> = owners.own.iter().chain(&owners.coming).copied().collect();
                let taking = processes.take_over(workers[&slot].id, &from, then);
                let (clusters, cluster) = (Arc::clone(self), cluster.id);
                drop(tokio::spawn(async move {
                    tokio::select! {
                        () = taking => {}
                        () = clusters.clock.sleep(TAKE_OVER_MAX) => tracing::warn!(slot, "what is hot could not be taken over in time"),
                    }
                    if let Some(owners) = clusters.owners.lock().get_mut(&cluster) {
                        owners.came(slot);
                    }
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(slots: &[u32]) -> BTreeSet<u32> {
        slots.iter().copied().collect()
    }

    #[test]
    fn who_comes_first_owns_at_once_and_who_comes_later_takes_over() {
        let mut owners = Owners::default();
        assert!(owners.note(&slots(&[0]), 3, false).is_empty());
        assert!(owners.note(&slots(&[0, 1]), 3, false).is_empty(), "nobody has asked for anything");
        assert_eq!(owners.note(&slots(&[0, 1, 2]), 3, true), [2]);
        assert!(owners.note(&slots(&[0, 1, 2]), 3, true).is_empty(), "it is about to");
        assert_eq!(owners.own, slots(&[0, 1]));
        owners.came(2);
        assert_eq!(owners.own, slots(&[0, 1, 2]));
    }

    #[test]
    fn who_replaces_a_worker_owns_what_it_owned() {
        let mut owners = Owners { own: slots(&[0, 1]), coming: BTreeSet::new() };
        assert!(owners.note(&slots(&[0]), 2, true).is_empty(), "one is lost");
        assert!(owners.note(&slots(&[0, 1]), 2, true).is_empty(), "its slot has another");
        assert_eq!(owners.own, slots(&[0, 1]));
        assert!(owners.note(&slots(&[]), 2, true).is_empty(), "all sleep");
        assert!(owners.note(&slots(&[1]), 2, true).is_empty());
        assert!(owners.note(&slots(&[0]), 1, true).is_empty(), "one is not wanted any more");
        assert_eq!(owners.own, slots(&[0]));
    }

    #[test]
    fn a_slot_that_goes_before_it_has_come_owns_nothing() {
        let mut owners = Owners { own: slots(&[0]), coming: BTreeSet::new() };
        assert_eq!(owners.note(&slots(&[0, 1]), 2, true), [1]);
        assert!(owners.note(&slots(&[0]), 1, true).is_empty());
        owners.came(1);
        assert_eq!(owners.own, slots(&[0]));
    }
}
