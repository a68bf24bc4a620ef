//! Which worker reads which parts of a scan: pure functions over who owns what.

use std::fmt;
use std::sync::Arc;

use scan::PartKey;
use shards::BUCKETS;
use url::Url;

#[cfg(test)]
mod tests;

/// The workers of a cluster, and which of them has a part in its cache.
pub trait Cluster: Send + Sync + fmt::Debug {
    /// The addresses of those that take work now, each once, always in the same order.
    fn workers(&self) -> Vec<Url>;

    /// Which of `among` each part belongs to: their numbers, in the parts' order. `among` is not empty.
    fn owners(&self, parts: &[PartKey], among: &[Url]) -> Vec<usize>;

    /// Which of `among` each bucket of distributed tables belongs to: its number, for all [`BUCKETS`](shards::BUCKETS) of them; always the same for
    /// the same ones. `among` is not empty.
    fn bucket_owners(&self, among: &[Url]) -> Vec<usize>;

    /// Takes notice that a query could not reach a worker, or lost it on the way: others had better do without it.
    fn unreached(&self, worker: &Url);

    /// Those of `among` that may be given one more query as a whole, in their order: others have enough of them, and who owns most after them stands in.
    /// At least one, where there is one.
    fn with_room(&self, among: &[Url]) -> Vec<Url> {
        among.to_vec()
    }

    /// Has `worker` run one more query as a whole, for as long as what it gives is kept.
    fn count(&self, _worker: &Url) -> Option<Box<dyn Send + Sync>> {
        None
    }
}

/// A cluster without one of its workers, which was lost on the way.
#[derive(Debug)]
pub struct Without {
    cluster: Arc<dyn Cluster>,
    lost: Url,
}

impl Without {
    #[must_use]
    pub fn new(cluster: Arc<dyn Cluster>, lost: Url) -> Self {
        Self { cluster, lost }
    }
}

impl Cluster for Without {
    fn workers(&self) -> Vec<Url> {
        let mut workers = self.cluster.workers();
        workers.retain(|worker| *worker != self.lost);
        workers
    }

    fn owners(&self, parts: &[PartKey], among: &[Url]) -> Vec<usize> {
        self.cluster.owners(parts, among)
    }

    fn bucket_owners(&self, among: &[Url]) -> Vec<usize> {
        self.cluster.bucket_owners(among)
    }

    fn unreached(&self, worker: &Url) {
        self.cluster.unreached(worker);
    }

    fn with_room(&self, among: &[Url]) -> Vec<Url> {
        self.cluster.with_room(among)
    }

    fn count(&self, worker: &Url) -> Option<Box<dyn Send + Sync>> {
        self.cluster.count(worker)
    }
}

/// For each of `workers` the numbers of the parts that it reads: those it owns. What nobody owns the first one reads.
pub(super) fn assign(parts: &[Option<PartKey>], workers: &[Url], cluster: &dyn Cluster) -> Vec<Vec<usize>> {
    let mut assigned = vec![Vec::new(); workers.len()];
    let known: Vec<PartKey> = parts.iter().copied().flatten().collect();
    let mut owners = cluster.owners(&known, workers).into_iter();
    for (number, part) in parts.iter().enumerate() {
        let owner = part.and_then(|_| owners.next()).unwrap_or(0);
        // An owner that is not among them is a mistake that costs a read from afar, not an answer.
        assigned[owner.min(workers.len() - 1)].push(number);
    }
    assigned
}

/// The `count` workers for a stage that reads these parts: those that own most of them first, then any others, in the order of `workers`.
pub(super) fn readers(parts: &[Option<PartKey>], workers: &[Url], count: usize, cluster: &dyn Cluster) -> Vec<Url> {
    let owned = assign(parts, workers, cluster);
    let mut by_owned: Vec<usize> = (0..workers.len()).collect();
    by_owned.sort_by_key(|worker| std::cmp::Reverse(owned[*worker].len()));
    by_owned.truncate(count);
    by_owned.sort_unstable();
    by_owned.into_iter().map(|worker| workers[worker].clone()).collect()
}

/// The `count` workers for a stage that reads buckets, and which of them has which: the same for all scans of the stage, whatever they read, so that
/// rows of one bucket are in one task.
pub(super) fn bucket_readers(workers: &[Url], count: usize, cluster: &dyn Cluster) -> (Vec<Url>, Vec<usize>) {
    let mut owned = vec![0; workers.len()];
    cluster.bucket_owners(workers).into_iter().for_each(|owner| owned[owner.min(workers.len() - 1)] += 1);
    let mut readers: Vec<usize> = (0..workers.len()).collect();
    readers.sort_by_key(|worker| std::cmp::Reverse(owned[*worker]));
    readers.truncate(count);
    readers.sort_unstable();
    let readers: Vec<Url> = readers.into_iter().map(|worker| workers[worker].clone()).collect();
    let last = readers.len().saturating_sub(1);
    let mut owners = cluster.bucket_owners(&readers);
    owners.resize(BUCKETS, 0);
    owners.iter_mut().for_each(|owner| *owner = last.min(*owner));
    (readers, owners)
}

/// How many of `workers` own some of these parts; one where there is nothing to own.
pub(super) fn owner_count(parts: &[Option<PartKey>], workers: &[Url], cluster: &dyn Cluster) -> usize {
    let owned = assign(parts, workers, cluster);
    owned.iter().filter(|parts| !parts.is_empty()).count().max(1)
}

/// The workers that run the tasks of a stage: `wanted` one by one where it is there and has no other task of the stage, else one that has none.
/// `None` where there are fewer workers than tasks.
pub(super) fn routed(wanted: &[Option<Url>], ready: &[Url]) -> Option<Vec<Url>> {
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
