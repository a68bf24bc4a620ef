//! A cluster whose workers are processes of their own, as queries are divided among them.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_model::placement::{Part, Placement, have_room};
use cluster_model::{ClusterId, Worker, WorkerId, WorkerState};
use exchange::{Cluster, Distribution, Exchange, JoinExchange};
use fleet::task_url;
use scan::PartKey;
use scheduler::Lease;
use settings::Settings;
use shards::BUCKETS;
use url::Url;

use crate::clusters::Clusters;

/// No worker gets more of a scan than this, in percent of the mean: what it owns beyond that its second reads.
const SHARE_MAX_PCT: u64 = 125;
/// And of buckets, which are few: a query takes as long as who has most of them.
const BUCKETS_MAX_PCT: u64 = 110;
/// So many queries for each of its cores a worker runs as a whole before others stand in for it: then they wait for each other there more than a cold cache costs.
const WHOLE_OF_CORE: u64 = 2;

/// A side of a join that reads as many rows is worth a question to the other side, which takes some ten milliseconds.
const KEYS_FROM_ROWS: f64 = 500_000.0;

impl Clusters {
    /// How a statement with this lease and these settings is divided among the workers of its cluster; `None` where they are threads of this
    /// process.
    pub fn distribution(
        self: &Arc<Self>,
        cluster: ClusterId,
        lease: &Lease,
        settings: &Settings,
    ) -> Option<Arc<Distribution>> {
        let channels = self.channels.clone()?;
        let held: Vec<Held> = lease.processes().iter().filter_map(Held::of).collect();
        if held.is_empty() {
            return None;
        }
        let cores = lease.processes().iter().map(|worker| worker.spec.share.millicores.div_ceil(1_000)).min();
        let at_once = u64::from(cores.unwrap_or(1).max(1)) * WHOLE_OF_CORE;
        let exchange = Exchange {
            joins: match settings.join_exchange() {
                "shuffle" => JoinExchange::Shuffle,
                "broadcast" => JoinExchange::Broadcast,
                _ => JoinExchange::ByCost,
            },
            partitions: cores.and_then(|cores| usize::try_from(cores).ok()).unwrap_or(1),
            small_bytes: settings.min_parallel_bytes(),
            keys_from_rows: KEYS_FROM_ROWS,
        };
        let at_once = u32::try_from(at_once).unwrap_or(u32::MAX);
        let cluster = Arc::new(HeldWorkers { clusters: Arc::clone(self), cluster, held, at_once });
        Some(Arc::new(Distribution { cluster, channels, exchange, random: Arc::clone(&self.random) }))
    }
}

/// The workers that a statement holds.
#[derive(Debug)]
struct HeldWorkers {
    clusters: Arc<Clusters>,
    cluster: ClusterId,
    held: Vec<Held>,
    /// How many queries one of them runs as a whole before others stand in.
    at_once: u32,
}

impl HeldWorkers {
    fn find(&self, worker: &Url) -> Option<&Held> {
        self.held.iter().find(|held| held.url == *worker)
    }

    /// Which of `among` has each of the parts, none of them many more than others: so many percent of the mean.
    fn placed(&self, parts: impl Iterator<Item = Part>, among: &[Url], percent: u64) -> Vec<usize> {
        let slot = |worker: &Url| self.find(worker).map(|held| held.slot);
        let number: HashMap<u32, usize> =
            among.iter().enumerate().filter_map(|(number, worker)| Some((slot(worker)?, number))).collect();
        let placement = Placement::new(self.cluster, number.keys().copied());
        let sized: Vec<(Part, u64)> = parts.map(|part| (part, 1)).collect();
        placement.bounded(&sized, percent).into_iter().map(|slot| number[&slot]).collect()
    }
}

#[derive(Debug)]
struct Held {
    id: WorkerId,
    slot: u32,
    url: Url,
}

impl Held {
    /// `None` for one that takes no tasks.
    fn of(worker: &Worker) -> Option<Self> {
        Some(Self { id: worker.id, slot: worker.slot, url: task_url(worker)? })
    }
}

impl Cluster for HeldWorkers {
    fn workers(&self) -> Vec<Url> {
        let known = self.clusters.plane.workers();
        let is_there = |held: &&Held| {
            let state = known.iter().find(|worker| worker.id == held.id);
            // One that is told to go waits for the statements that hold it.
            state.is_some_and(|it| matches!(it.state, WorkerState::Ready | WorkerState::Draining) && !it.hung)
        };
        self.held.iter().filter(is_there).map(|held| held.url.clone()).collect()
    }

    fn owners(&self, parts: &[PartKey], among: &[Url]) -> Vec<usize> {
        let parts = parts.iter().map(|part| Part::new(part.shard, part.piece()));
        self.placed(parts, among, SHARE_MAX_PCT)
    }

    fn bucket_owners(&self, among: &[Url]) -> Vec<usize> {
        let buckets = (0..).take(BUCKETS).map(Part::of_bucket);
        self.placed(buckets, among, BUCKETS_MAX_PCT)
    }

    fn unreached(&self, worker: &Url) {
        let held = self.held.iter().find(|held| held.url == *worker);
        if let (Some(held), Some(processes)) = (held, &self.clusters.processes) {
            processes.unreached(held.id);
        }
    }

    fn with_room(&self, among: &[Url]) -> Vec<Url> {
        let ids: Vec<WorkerId> = among.iter().filter_map(|worker| Some(self.find(worker)?.id)).collect();
        if ids.len() < among.len() {
            return among.to_vec();
        }
        let room = have_room(&self.clusters.whole_queries.running(&ids), self.at_once, SHARE_MAX_PCT);
        among.iter().zip(room).filter(|(_, has_room)| *has_room).map(|(worker, _)| worker.clone()).collect()
    }

    fn count(&self, worker: &Url) -> Option<Box<dyn Send + Sync>> {
        Some(Box::new(self.clusters.whole_queries.count(self.find(worker)?.id)))
    }
}
