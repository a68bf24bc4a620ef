//! Assigns parts of scans to workers: pure functions over a [`Cluster`].

use std::fmt;
use std::sync::Arc;

use scan::PartLocation;
use shards::BUCKET_COUNT;
use url::Url;

#[cfg(test)]
mod tests;

/// Workers of a cluster and their ownership of parts and buckets.
pub trait Cluster: Send + Sync + fmt::Debug {
    /// Returns the addresses of the workers that accept work now, without duplicates and always in the same order.
    fn workers(&self) -> Vec<Url>;

    /// Returns, for each part in order, the index in `among` of the worker that owns it. `among` is not empty.
    fn part_owners(&self, parts: &[PartLocation], among: &[Url]) -> Vec<usize>;

    /// Returns, for each of the [`BUCKETS`](shards::BUCKET_COUNT) of distributed tables, the index in `among` of the worker
    /// that owns it. The result depends on `among` alone, which is not empty.
    fn bucket_owners(&self, among: &[Url]) -> Vec<usize>;

    /// Records that a query could not reach a worker, or lost it, so that other queries avoid it.
    fn report_unreachable(&self, worker: &Url);

    /// Returns the workers of `among` that may run one more query as a single task, in their order. Others are at their
    /// limit; the next best owner takes their queries. At least one, unless `among` is empty.
    fn with_free_capacity(&self, among: &[Url]) -> Vec<Url> {
        among.to_vec()
    }

    /// Counts one more query that runs on `worker` as a single task, until the returned guard is dropped.
    fn count_single_task(&self, _worker: &Url) -> Option<Box<dyn Send + Sync>> {
        None
    }
}

/// A cluster without one of its workers, which was lost.
#[derive(Debug)]
pub struct WithoutWorker {
    cluster: Arc<dyn Cluster>,
    lost: Url,
}

impl WithoutWorker {
    #[must_use]
    pub fn new(cluster: Arc<dyn Cluster>, lost: Url) -> Self {
        Self { cluster, lost }
    }
}

impl Cluster for WithoutWorker {
    fn workers(&self) -> Vec<Url> {
        let mut workers = self.cluster.workers();
        workers.retain(|worker| *worker != self.lost);
        workers
    }

    fn part_owners(&self, parts: &[PartLocation], among: &[Url]) -> Vec<usize> {
        self.cluster.part_owners(parts, among)
    }

    fn bucket_owners(&self, among: &[Url]) -> Vec<usize> {
        self.cluster.bucket_owners(among)
    }

    fn report_unreachable(&self, worker: &Url) {
        self.cluster.report_unreachable(worker);
    }

    fn with_free_capacity(&self, among: &[Url]) -> Vec<Url> {
        self.cluster.with_free_capacity(among)
    }

    fn count_single_task(&self, worker: &Url) -> Option<Box<dyn Send + Sync>> {
        self.cluster.count_single_task(worker)
    }
}

/// Returns, for each of `workers`, the indices of the parts that it owns. Parts without a key go to the first worker.
pub(super) fn assign_parts(parts: &[Option<PartLocation>], workers: &[Url], cluster: &dyn Cluster) -> Vec<Vec<usize>> {
    let mut assigned = vec![Vec::new(); workers.len()];
    let known: Vec<PartLocation> = parts.iter().copied().flatten().collect();
    let mut owners = cluster.part_owners(&known, workers).into_iter();
    for (number, part) in parts.iter().enumerate() {
        let owner = part.and_then(|_| owners.next()).unwrap_or(0);
        // An owner out of range costs a remote read, but no wrong result.
        assigned[owner.min(workers.len() - 1)].push(number);
    }
    assigned
}

/// Returns the `count` workers for a stage that reads these parts: those that own most of them, in the order of
/// `workers`.
pub(super) fn choose_readers(
    parts: &[Option<PartLocation>],
    workers: &[Url],
    count: usize,
    cluster: &dyn Cluster,
) -> Vec<Url> {
    let owned = assign_parts(parts, workers, cluster);
    let mut by_owned: Vec<usize> = (0..workers.len()).collect();
    by_owned.sort_by_key(|worker| std::cmp::Reverse(owned[*worker].len()));
    by_owned.truncate(count);
    by_owned.sort_unstable();
    by_owned.into_iter().map(|worker| workers[worker].clone()).collect()
}

/// Returns the `count` workers for a stage that reads buckets, and for each bucket the index of its reader. The result
/// is the same for all scans of the stage, so that the rows of a bucket meet in one task.
pub(super) fn assign_buckets(workers: &[Url], count: usize, cluster: &dyn Cluster) -> (Vec<Url>, Vec<usize>) {
    let mut owned = vec![0; workers.len()];
    cluster.bucket_owners(workers).into_iter().for_each(|owner| owned[owner.min(workers.len() - 1)] += 1);
    let mut readers: Vec<usize> = (0..workers.len()).collect();
    readers.sort_by_key(|worker| std::cmp::Reverse(owned[*worker]));
    readers.truncate(count);
    readers.sort_unstable();
    let readers: Vec<Url> = readers.into_iter().map(|worker| workers[worker].clone()).collect();
    let last = readers.len().saturating_sub(1);
    let mut owners = cluster.bucket_owners(&readers);
    owners.resize(BUCKET_COUNT, 0);
    owners.iter_mut().for_each(|owner| *owner = last.min(*owner));
    (readers, owners)
}

/// Returns how many of `workers` own any of these parts; at least one.
pub(super) fn owner_count(parts: &[Option<PartLocation>], workers: &[Url], cluster: &dyn Cluster) -> usize {
    let owned = assign_parts(parts, workers, cluster);
    owned.iter().filter(|parts| !parts.is_empty()).count().max(1)
}

/// Assigns workers to the tasks of a stage: the wanted worker if it is ready and has no other task of the stage, else
/// any that has none. `None` if there are fewer ready workers than tasks.
pub(super) fn assign_tasks(wanted: &[Option<Url>], ready: &[Url]) -> Option<Vec<Url>> {
    let mut routed: Vec<Option<Url>> = vec![None; wanted.len()];
    for (task, wanted) in wanted.iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        if ready.contains(wanted) && !routed.iter().flatten().any(|taken| taken == wanted) {
            routed[task] = Some(wanted.clone());
        }
    }
    for task in 0..routed.len() {
        if routed[task].is_none() {
            let free = ready.iter().find(|worker| !routed.iter().flatten().any(|taken| taken == *worker));
            routed[task] = Some(free?.clone());
        }
    }
    routed.into_iter().collect()
}
