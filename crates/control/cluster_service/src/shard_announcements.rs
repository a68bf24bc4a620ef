//! Announcements of new shards to the worker processes that own pieces of them, for pre-warming their caches.
//!
//! New shards come from loads, flushes and compaction. Announcing is asynchronous, so commits never wait for it:
//! everything committed during one round is announced in the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogState, Table, TableShards};
use cluster_model::placement::{Part, Placement};
use cluster_model::{ClusterId, Worker};
use exchange::{NewShards, shard_parts};
use fleet::task_url;
use futures::future::join_all;
use shards::ShardMeta;
use txn::Transactions;
use types::Oid;

use crate::clusters::Clusters;

#[cfg(test)]
mod tests;

/// Most shards of one table to announce in a round; if there are more, the newest ones are announced.
const SHARDS_PER_ROUND_MAX: usize = 4_096;
/// Interval of rounds.
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_millis(100);

/// Table with the shards that were added to it.
type AddedShards = (Arc<Table>, Vec<Arc<ShardMeta>>);

/// Shard lists of all tables as of the last round.
#[derive(Debug, Default)]
struct ShardLists(HashMap<Oid, TableShards>);

impl ShardLists {
    /// Updates the shard lists and returns the shards added since the last call.
    fn take_added(&mut self, state: &CatalogState) -> Vec<AddedShards> {
        self.0.retain(|table, _| state.table(*table).is_some());
        let mut all = Vec::new();
        for table in state.tables() {
            let now = state.shards(table.oid);
            let before = self.0.entry(table.oid).or_default();
            let added = now.added_since(before, SHARDS_PER_ROUND_MAX);
            if !added.is_empty() {
                all.push((Arc::clone(table), added));
            }
            if now.shards.len() != before.shards.len() || now.shards.newest() != before.shards.newest() {
                *before = now.clone();
            }
        }
        all
    }
}

/// Groups new shards by the slots that own pieces of them.
fn group_by_owner(placement: &Placement, added: &[AddedShards]) -> BTreeMap<u32, Vec<NewShards>> {
    let mut all: BTreeMap<u32, Vec<NewShards>> = BTreeMap::new();
    for (table, shards) in added {
        let mut owned: BTreeMap<u32, Vec<&Arc<ShardMeta>>> = BTreeMap::new();
        for shard in shards {
            let owner = |piece: scan::PartLocation| placement.owner(Part::new(piece.shard, piece.ownership_unit()));
            let owners: BTreeSet<u32> = shard_parts(shard).filter_map(owner).collect();
            owners.into_iter().for_each(|owner| owned.entry(owner).or_default().push(shard));
        }
        for (slot, shards) in owned {
            all.entry(slot).or_default().push(NewShards::new(table, shards));
        }
    }
    all
}

impl Clusters {
    /// Announces new shards to worker processes for as long as the server runs.
    pub async fn announce_new_shards(&self, transactions: &Transactions) {
        let mut known: Option<ShardLists> = None;
        loop {
            let revision = self.revision();
            let hearing = self.announcement_targets();
            if hearing.is_empty() {
                known = None;
                self.wait_for_change(revision).await;
                continue;
            }
            let snapshot = transactions.current();
            let seen = snapshot.ts;
            let added = if let Some(known) = &mut known {
                known.take_added(&snapshot.state)
            } else {
                // The first round only records the existing shards.
                known.insert(ShardLists::default()).take_added(&snapshot.state);
                Vec::new()
            };
            // A snapshot keeps its objects from being deleted, so drop it before waiting.
            drop(snapshot);
            if !added.is_empty() {
                let told = hearing.iter().map(|(cluster, workers)| self.announce(*cluster, workers, &added));
                join_all(told).await;
            }
            self.clock.sleep(ANNOUNCEMENT_INTERVAL).await;
            tokio::select! {
                () = transactions.wait_for_commit_after(seen) => {}
                () = self.wait_for_change(revision) => {}
            }
        }
    }

    /// Returns the worker processes that own parts of shards and are not handing over, by cluster; omits clusters
    /// without any.
    fn announcement_targets(&self) -> Vec<(ClusterId, Vec<Worker>)> {
        let desired = self.plane.desired();
        let awake = desired.clusters().filter(|cluster| !cluster.suspended);
        let hears = |worker: &Worker| !worker.is_handing_over && task_url(worker).is_some();
        let hearing =
            awake.map(|cluster| (cluster.id, self.owning_workers(cluster.id).into_iter().filter(hears).collect()));
        hearing.filter(|(_, workers): &(ClusterId, Vec<Worker>)| !workers.is_empty()).collect()
    }

    /// Announces shards to the workers of a cluster; completes when they have received them, or after a timeout.
    async fn announce(&self, cluster: ClusterId, workers: &[Worker], added: &[AddedShards]) {
        let Some(processes) = &self.processes else { return };
        let placement = Placement::new(cluster, workers.iter().map(|worker| worker.slot));
        let mut told = group_by_owner(&placement, added);
        let each: Vec<_> = workers
            .iter()
            .filter_map(|worker| Some(processes.announce_shards(worker, placement.slots(), told.remove(&worker.slot)?)))
            .collect();
        join_all(each).await;
    }
}
