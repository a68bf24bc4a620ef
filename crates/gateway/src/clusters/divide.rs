//! A cluster whose workers are processes of their own, as queries are divided among them.

use std::collections::HashMap;
use std::sync::Arc;

use cluster::placement::{Part, Placement};
use cluster::{ClusterId, ControlPlane, Worker, WorkerId, WorkerState};
use execution::distribute::{Cluster, Distribution, Exchange, JoinExchange};
use execution::{BUCKETS, Lease, PartKey};
use fleet::task_url;
use planner::Settings;
use url::Url;

use super::Clusters;

/// No worker gets more of a scan than this, in percent of the mean: what it owns beyond that its second reads.
const SHARE_MAX_PCT: u64 = 125;
/// And of buckets, which are few: a query takes as long as who has most of them.
const BUCKETS_MAX_PCT: u64 = 110;

impl Clusters {
    /// How a statement with this lease and these settings is divided among the workers of its cluster; `None` where they are threads of this
    /// process.
    pub(crate) fn distribution(
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
        let exchange = Exchange {
            joins: match settings.join_exchange() {
                "shuffle" => JoinExchange::Shuffle,
                "broadcast" => JoinExchange::Broadcast,
                _ => JoinExchange::ByCost,
            },
            partitions: cores.and_then(|cores| usize::try_from(cores).ok()).unwrap_or(1),
            small_bytes: settings.min_parallel_bytes(),
        };
        let cluster = Arc::new(HeldWorkers { clusters: Arc::clone(self), cluster, held });
        Some(Arc::new(Distribution { cluster, channels, exchange, random: Arc::clone(&self.random) }))
    }
}

/// The workers that a statement holds.
#[derive(Debug)]
struct HeldWorkers {
    clusters: Arc<Clusters>,
    cluster: ClusterId,
    held: Vec<Held>,
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
}

impl HeldWorkers {
    /// Which of `among` has each of the parts, none of them many more than others: so many percent of the mean.
    fn placed(&self, parts: impl Iterator<Item = Part>, among: &[Url], percent: u64) -> Vec<usize> {
        let slot = |worker: &Url| self.held.iter().find(|held| held.url == *worker).map(|held| held.slot);
        let number: HashMap<u32, usize> =
            among.iter().enumerate().filter_map(|(number, worker)| Some((slot(worker)?, number))).collect();
        let placement = Placement::new(self.cluster, number.keys().copied());
        let sized: Vec<(Part, u64)> = parts.map(|part| (part, 1)).collect();
        placement.bounded(&sized, percent).into_iter().map(|slot| number[&slot]).collect()
    }
}
