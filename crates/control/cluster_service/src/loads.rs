//! Workers learn of the shards that loads, settling and compaction have just made, each of those of which it owns a piece. That is beside the commits and never in
//! their way: what is committed while workers are told comes next, all of it together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogState, Table, TableShards};
use cluster_model::placement::{Part, Placement};
use cluster_model::{ClusterId, Worker};
use exchange::{NewShards, pieces};
use fleet::task_url;
use futures::future::join_all;
use shards::ShardMeta;
use txn::Transactions;
use types::Oid;

use crate::clusters::Clusters;

#[cfg(test)]
mod tests;

/// Of more new shards of one table at a time workers are told the newest alone.
const SHARDS_MAX: usize = 4_096;
/// Between two looks at what tables have.
const PACE: Duration = Duration::from_millis(100);

/// A table with the shards that were added to it.
type Added = (Arc<Table>, Vec<Arc<ShardMeta>>);

/// What tables had when they were last looked at.
#[derive(Debug, Default)]
struct Known(HashMap<Oid, TableShards>);

impl Known {
    /// Takes note of what tables have; gives what was added since.
    fn note(&mut self, state: &CatalogState) -> Vec<Added> {
        self.0.retain(|table, _| state.table(*table).is_some());
        let mut all = Vec::new();
        for table in state.tables() {
            let now = state.shards(table.oid);
            let before = self.0.entry(table.oid).or_default();
            let added = now.added_since(before, SHARDS_MAX);
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

/// What the workers of a cluster are told, by slot: shards of which they own a piece.
fn by_owner(placement: &Placement, added: &[Added]) -> BTreeMap<u32, Vec<NewShards>> {
    let mut all: BTreeMap<u32, Vec<NewShards>> = BTreeMap::new();
    for (table, shards) in added {
        let mut owned: BTreeMap<u32, Vec<&Arc<ShardMeta>>> = BTreeMap::new();
        for shard in shards {
            let owner = |piece: scan::PartKey| placement.owner(Part::new(piece.shard, piece.piece()));
            let owners: BTreeSet<u32> = pieces(shard).filter_map(owner).collect();
            owners.into_iter().for_each(|owner| owned.entry(owner).or_default().push(shard));
        }
        for (slot, shards) in owned {
            all.entry(slot).or_default().push(NewShards::of(table, shards));
        }
    }
    all
}

impl Clusters {
    /// Tells workers in other processes of new shards, for as long as the server runs.
    pub async fn tell_of_loads(&self, transactions: &Transactions) {
        let mut known: Option<Known> = None;
        loop {
            let revision = self.revision();
            let hearing = self.hearing();
            if hearing.is_empty() {
                known = None;
                self.changed_since(revision).await;
                continue;
            }
            let snapshot = transactions.current();
            let seen = snapshot.ts;
            let added = if let Some(known) = &mut known {
                known.note(&snapshot.state)
            } else {
                // What is there already was there before anybody could hear of it.
                known.insert(Known::default()).note(&snapshot.state);
                Vec::new()
            };
            // A state that is looked at keeps what it names.
            drop(snapshot);
            if !added.is_empty() {
                let told = hearing.iter().map(|(cluster, workers)| self.tell(*cluster, workers, &added));
                join_all(told).await;
            }
            self.clock.sleep(PACE).await;
            tokio::select! {
                () = transactions.newer_than(seen) => {}
                () = self.changed_since(revision) => {}
            }
        }
    }

    /// The workers in other processes that own parts of shards and go on to, of clusters that have some.
    fn hearing(&self) -> Vec<(ClusterId, Vec<Worker>)> {
        let desired = self.plane.desired();
        let awake = desired.clusters().filter(|cluster| !cluster.suspended);
        let hears = |worker: &Worker| !worker.hands_over && task_url(worker).is_some();
        let hearing = awake.map(|cluster| (cluster.id, self.owning(cluster.id).into_iter().filter(hears).collect()));
        hearing.filter(|(_, workers): &(ClusterId, Vec<Worker>)| !workers.is_empty()).collect()
    }

    /// Tells the workers of a cluster; completes when they have heard it, or some seconds later.
    async fn tell(&self, cluster: ClusterId, workers: &[Worker], added: &[Added]) {
        let Some(processes) = &self.processes else { return };
        let placement = Placement::new(cluster, workers.iter().map(|worker| worker.slot));
        let mut told = by_owner(&placement, added);
        let each: Vec<_> = workers
            .iter()
            .filter_map(|worker| Some(processes.tell_loaded(worker, placement.slots(), told.remove(&worker.slot)?)))
            .collect();
        join_all(each).await;
    }
}
