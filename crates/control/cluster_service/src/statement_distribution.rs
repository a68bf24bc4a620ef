//! Distribution of statements over the worker processes of a cluster.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_model::placement::{Part, Placement, have_capacity};
use cluster_model::{ClusterId, Worker, WorkerId, WorkerState};
use exchange::{Cluster, DistributionContext, ExchangeConfig, JoinDistribution};
use fleet::task_url;
use scan::PartLocation;
use scheduler::Lease;
use settings::Settings;
use shards::BUCKET_COUNT;
use url::Url;

use crate::clusters::Clusters;

/// Largest part of a scan for one worker, in percent of the mean. A substitute reads the parts beyond that.
const SCAN_SHARE_MAX_PCT: u64 = 125;
/// Largest number of buckets for one worker, in percent of the mean. It is lower because buckets are few and the worker
/// with the most buckets determines the time of a query.
const BUCKET_SHARE_MAX_PCT: u64 = 110;
/// Number of queries per core that a worker runs alone before substitutes help: beyond that, waiting costs more than a
/// cold cache.
const SINGLE_WORKER_QUERIES_PER_CORE: u64 = 2;

/// Rows of a join side from which filtering it by the keys of the other side (semi-join reduction) is worth the round
/// trip of some ten milliseconds.
const SEMI_JOIN_ROWS_MIN: f64 = 500_000.0;

impl Clusters {
    /// Returns how to distribute a statement with this lease and these settings over the workers of its cluster; `None`
    /// if they are threads of this process.
    pub fn distribution(
        self: &Arc<Self>,
        cluster: ClusterId,
        lease: &Lease,
        settings: &Settings,
    ) -> Option<Arc<DistributionContext>> {
        let channels = self.channels.clone()?;
        let held: Vec<LeasedWorker> = lease.worker_processes().iter().filter_map(LeasedWorker::from_worker).collect();
        if held.is_empty() {
            return None;
        }
        let cores = lease.worker_processes().iter().map(|worker| worker.spec.share.millicores.div_ceil(1_000)).min();
        let at_once = u64::from(cores.unwrap_or(1).max(1)) * SINGLE_WORKER_QUERIES_PER_CORE;
        let exchange = ExchangeConfig {
            joins: match settings.join_exchange() {
                "shuffle" => JoinDistribution::Shuffle,
                "broadcast" => JoinDistribution::Broadcast,
                _ => JoinDistribution::ByCost,
            },
            partitions: cores.and_then(|cores| usize::try_from(cores).ok()).unwrap_or(1),
            single_task_bytes_max: settings.min_parallel_bytes(),
            semi_join_rows_min: SEMI_JOIN_ROWS_MIN,
        };
        let at_once = u32::try_from(at_once).unwrap_or(u32::MAX);
        let cluster = Arc::new(LeasedWorkers {
            clusters: Arc::clone(self),
            cluster,
            workers: held,
            single_worker_queries_max: at_once,
        });
        Some(Arc::new(DistributionContext { cluster, channels, exchange, random: Arc::clone(&self.random) }))
    }
}

/// Workers on which a statement has a lease.
#[derive(Debug)]
struct LeasedWorkers {
    clusters: Arc<Clusters>,
    cluster: ClusterId,
    workers: Vec<LeasedWorker>,
    /// Number of queries that one worker runs alone before substitutes help.
    single_worker_queries_max: u32,
}

impl LeasedWorkers {
    /// Returns the worker with this task URL.
    fn find_by_url(&self, worker: &Url) -> Option<&LeasedWorker> {
        self.workers.iter().find(|held| held.url == *worker)
    }

    /// Places parts among the workers `among` so that none has more than `percent` of the mean. Returns an index into
    /// `among` for each part.
    fn place_parts(&self, parts: impl Iterator<Item = Part>, among: &[Url], percent: u64) -> Vec<usize> {
        let slot = |worker: &Url| self.find_by_url(worker).map(|held| held.slot);
        let number: HashMap<u32, usize> =
            among.iter().enumerate().filter_map(|(number, worker)| Some((slot(worker)?, number))).collect();
        let placement = Placement::new(self.cluster, number.keys().copied());
        let sized: Vec<(Part, u64)> = parts.map(|part| (part, 1)).collect();
        placement.place_bounded(&sized, percent).into_iter().map(|slot| number[&slot]).collect()
    }
}

/// Leased worker with its task URL.
#[derive(Debug)]
struct LeasedWorker {
    id: WorkerId,
    slot: u32,
    url: Url,
}

impl LeasedWorker {
    /// Creates the entry of a worker; `None` if it has not joined.
    fn from_worker(worker: &Worker) -> Option<Self> {
        Some(Self { id: worker.id, slot: worker.slot, url: task_url(worker)? })
    }
}

impl Cluster for LeasedWorkers {
    fn workers(&self) -> Vec<Url> {
        let known = self.clusters.plane.workers();
        let is_there = |held: &&LeasedWorker| {
            let state = known.iter().find(|worker| worker.id == held.id);
            // A draining worker still runs the statements that hold a lease on it.
            state.is_some_and(|it| matches!(it.state, WorkerState::Ready | WorkerState::Draining) && !it.hung)
        };
        self.workers.iter().filter(is_there).map(|held| held.url.clone()).collect()
    }

    fn part_owners(&self, parts: &[PartLocation], among: &[Url]) -> Vec<usize> {
        let parts = parts.iter().map(|part| Part::new(part.shard, part.ownership_unit()));
        self.place_parts(parts, among, SCAN_SHARE_MAX_PCT)
    }

    fn bucket_owners(&self, among: &[Url]) -> Vec<usize> {
        let buckets = (0..).take(BUCKET_COUNT).map(Part::from_bucket);
        self.place_parts(buckets, among, BUCKET_SHARE_MAX_PCT)
    }

    fn report_unreachable(&self, worker: &Url) {
        let held = self.workers.iter().find(|held| held.url == *worker);
        if let (Some(held), Some(processes)) = (held, &self.clusters.processes) {
            processes.report_unreachable(held.id);
        }
    }

    fn with_free_capacity(&self, among: &[Url]) -> Vec<Url> {
        let ids: Vec<WorkerId> = among.iter().filter_map(|worker| Some(self.find_by_url(worker)?.id)).collect();
        if ids.len() < among.len() {
            return among.to_vec();
        }
        let room = have_capacity(
            &self.clusters.single_worker_queries.counts(&ids),
            self.single_worker_queries_max,
            SCAN_SHARE_MAX_PCT,
        );
        among.iter().zip(room).filter(|(_, has_room)| *has_room).map(|(worker, _)| worker.clone()).collect()
    }

    fn count_single_task(&self, worker: &Url) -> Option<Box<dyn Send + Sync>> {
        Some(Box::new(self.clusters.single_worker_queries.register(self.find_by_url(worker)?.id)))
    }
}
