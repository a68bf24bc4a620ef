//! Cache of partial aggregates per shard: replaces the scan of a shard by the groups that an earlier query made of it,
//! and stores the groups of other shards.
//!
//! It applies to pipelines from a scan to an aggregation that no join filters.
//!
//! - `pipeline_digest.rs` and `expression_digest.rs` compute the digest of what a pipeline computes.
//! - `cache_unit.rs` identifies the rows of a shard that it reads.
//!
//! A worker that moves on to another shard hands over its groups of the previous one; a shard's groups are cached once
//! all of its parts have been handed over. If there are too many groups, workers stop handing them over, and the cache
//! remembers that.

mod cache_unit;
mod expression_digest;
mod pipeline_digest;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::memory_pool::MemoryReservation;
use engine::Digest;
use engine::aggregate::{AggregateSpec, CompactGroups, Groups};
use engine::pipeline::{Pipeline, Sink, Source};
use parking_lot::Mutex;
use plan::NoFragmentCache;
use scan::{FragmentCache, ShardScanExec};
use scheduler::yield_if_due;
use shards::ResultKey;
use types::{CachePolicy, Oid};

use crate::memory_accounting;
use crate::pipeline_workers::PipelineWorker;
use crate::plan::Input;
use crate::run_error::RunError;
use crate::run_pipelines::FragmentRun;
use cache_unit::{ShardUnit, expects_few_groups, is_worth_caching, units};

pub(super) use expression_digest::digest as arrow_expression_digest;

/// Maximum size of a result, as a fraction of the cache.
const RESULT_BYTES_SHARE: u64 = 16;

/// State of the cache for one pipeline and the shards that it scans.
pub(super) struct CachedShards {
    results: Arc<FragmentCache>,
    table: Oid,
    /// Digest of what the pipeline computes.
    fragment: Digest,
    /// Shards, by their position in the scan.
    shards: Vec<ShardEntry>,
    /// True once there are too many groups: workers keep theirs.
    has_stopped: AtomicBool,
    /// Memory of the groups that workers have handed over.
    memory: MemoryReservation,
    stop: Arc<AtomicBool>,
}

struct ShardEntry {
    unit: ShardUnit,
    key: ResultKey,
    /// Groups from the cache.
    cached: Option<Arc<CompactGroups>>,
    progress: Mutex<ShardProgress>,
}

/// Groups that this query has made of a shard so far.
#[derive(Default)]
struct ShardProgress {
    /// Parts whose rows are among the groups.
    parts: usize,
    groups: Option<Groups>,
    /// Final groups, once all parts are there.
    result: Option<Arc<CompactGroups>>,
    bytes: usize,
}

/// One worker's progress through the shards that it reads.
pub(super) struct ShardCollector {
    cached_shards: Arc<CachedShards>,
    /// Shard of the current groups; `None` before the first shard and for unflushed rows.
    shard: Option<usize>,
    /// Parts of the current shard that were begun.
    parts: usize,
    /// True if unflushed rows are among the groups.
    has_unflushed_rows: bool,
}

impl FragmentRun {
    /// Looks up the shards of a pipeline in the cache; `None` if the pipeline is not eligible.
    pub(super) fn cached_shards(&self, number: usize, pipeline: &Pipeline) -> Option<Arc<CachedShards>> {
        let (Source::Input(input), Sink::Aggregate(spec)) = (pipeline.source, &pipeline.sink) else { return None };
        let Input::Scan(input) = &self.compiled.inputs[input] else { return None };
        let before = number.checked_sub(1).map(|before| &self.compiled.program.pipelines[before]);
        let is_alone = !pipeline.continues_in_next
            && !before.is_some_and(|before| before.continues_in_next)
            && !pipeline.preserves_order;
        // Groups that depend on runtime filters of joins are specific to this query.
        if !is_alone || !input.keys.is_empty() || !spec.carried.is_empty() {
            return None;
        }
        let scan = input.scan.downcast_ref::<ShardScanExec>()?;
        let results = &scan.scan.fragments;
        let is_off = results.bytes_max() == 0
            || scan.scan.table.cache == CachePolicy::Never
            || self.context.session_config().get_extension::<NoFragmentCache>().is_some();
        if is_off || !is_worth_caching(scan) || !expects_few_groups(scan, spec, &pipeline.steps) {
            return None;
        }
        let fragment = pipeline_digest::digest(scan, &input.filters, &pipeline.steps, spec)?;
        if results.is_too_large(fragment.bytes()) {
            return None;
        }
        let table = scan.scan.table.oid;
        let units = units(scan);
        let keys: Vec<ResultKey> = units.iter().map(|unit| unit.key(&fragment)).collect();
        let known = results.find(table, keys.iter().copied());
        let shards = units.into_iter().zip(keys).zip(known);
        let shards =
            shards.map(|((unit, key), known)| ShardEntry { unit, key, cached: known, progress: Mutex::default() });
        Some(Arc::new(CachedShards {
            results: Arc::clone(results),
            table,
            fragment,
            shards: shards.collect(),
            has_stopped: AtomicBool::new(false),
            memory: memory_accounting::reservation(&self.memory_of_sink(number)),
            stop: Arc::clone(&self.stop),
        }))
    }
}

/// Returns the pipeline without early output of complete groups: the groups of a shard are one result.
pub(super) fn without_early_output(pipeline: &Pipeline) -> Pipeline {
    let sink = match &pipeline.sink {
        Sink::Aggregate(spec) => Sink::Aggregate(Arc::new(AggregateSpec { clustered: None, ..(**spec).clone() })),
        other => other.clone(),
    };
    Pipeline { sink, ..pipeline.clone() }
}

impl CachedShards {
    /// Returns whether a shard's groups come from the cache, so that it need not be scanned.
    pub(super) fn is_cached(&self, shard: usize) -> bool {
        self.shards.get(shard).is_some_and(|shard| shard.cached.is_some())
    }

    /// Adds the groups of all shards to a worker, in the order of shards.
    pub(super) async fn add_groups_to(&self, member: &mut PipelineWorker) -> Result<(), RunError> {
        for shard in &self.shards {
            let made = std::mem::take(&mut *shard.progress.lock());
            if let Some(whole) = shard.cached.as_ref().or(made.result.as_ref()) {
                member.worker.add_compact_groups(whole)?;
            }
            if let Some(groups) = made.groups {
                member.worker.add_groups(groups)?;
            }
            yield_if_due().await;
        }
        self.memory.free();
        Ok(())
    }

    fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::Relaxed)
    }

    /// Makes workers keep their groups from now on.
    fn stop_collecting(&self) {
        self.has_stopped.store(true, Ordering::Relaxed);
    }

    /// Does the same for later queries, by marking the computation in the cache.
    fn mark_uncacheable(&self) {
        self.stop_collecting();
        self.results.mark_too_large(*self.fragment.bytes());
    }

    /// Adds the groups that a worker made of `parts` parts of a shard.
    fn add(&self, shard: usize, groups: Option<Groups>, parts: usize) -> engine::Result<()> {
        let of_shard = &self.shards[shard];
        let mut made = of_shard.progress.lock();
        made.parts += parts;
        match (&mut made.groups, groups) {
            (Some(all), Some(groups)) => all.merge(groups, &self.stop)?,
            (none, Some(groups)) => *none = Some(groups),
            (_, None) => {}
        }
        if made.groups.as_ref().is_some_and(|groups| of_shard.unit.has_too_many_groups(groups)) {
            self.mark_uncacheable();
        } else if made.parts == of_shard.unit.parts {
            self.store(of_shard, &mut made)?;
        }
        let groups_bytes = made.groups.as_ref().map_or(0, Groups::memory_bytes);
        let bytes = groups_bytes + made.result.as_ref().map_or(0, |whole| whole.memory_bytes());
        let before = std::mem::replace(&mut made.bytes, bytes);
        self.memory.shrink(before.saturating_sub(bytes));
        let more = bytes.saturating_sub(before);
        if self.memory.try_grow(more).is_err() {
            // The query needs the groups anyway.
            self.memory.grow(more);
            self.stop_collecting();
        }
        Ok(())
    }

    /// Caches the groups of a shard, all of whose parts have been added.
    fn store(&self, of_shard: &ShardEntry, made: &mut ShardProgress) -> engine::Result<()> {
        let whole = match made.groups.take() {
            Some(groups) => groups.into_compact()?.ok_or(engine::Error::Internal(
                "groups to be stored in the cache of partial aggregates were flushed to partitions",
            ))?,
            None => CompactGroups::default(),
        };
        let (bytes, whole) = (whole.memory_bytes() as u64, Arc::new(whole));
        if self.results.bytes_max() / RESULT_BYTES_SHARE < bytes {
            self.mark_uncacheable();
        } else {
            self.results.put(self.table, of_shard.key, &whole, bytes);
        }
        made.result = Some(whole);
        Ok(())
    }
}

impl ShardCollector {
    /// Returns the state of a worker that has read nothing.
    pub(super) fn new(reuse: &Arc<CachedShards>) -> Self {
        Self { cached_shards: Arc::clone(reuse), shard: None, parts: 0, has_unflushed_rows: false }
    }

    /// Begins a part of a shard, or unflushed rows.
    pub(super) fn begin_part(&mut self, shard: Option<usize>, member: &mut PipelineWorker) -> engine::Result<()> {
        self.check_group_count(member);
        self.has_unflushed_rows |= shard.is_none();
        if self.has_unflushed_rows && shard.is_some() {
            // Unflushed rows normally come last. Otherwise, they cannot be separated from the shard's rows.
            self.cached_shards.stop_collecting();
        }
        if shard != self.shard {
            self.hand_over_groups(member)?;
            self.shard = shard;
        }
        self.parts += 1;
        Ok(())
    }

    /// Records a part of a shard without rows.
    pub(super) fn skip_part(&self, shard: usize) -> engine::Result<()> {
        self.cached_shards.add(shard, None, 1)
    }

    /// Hands over the last groups.
    pub(super) fn end(mut self, member: &mut PipelineWorker) -> engine::Result<()> {
        self.check_group_count(member);
        self.hand_over_groups(member)
    }

    /// Stops using the cache if there are too many groups, or if groups were spilled.
    fn check_group_count(&self, member: &PipelineWorker) {
        let Some(shard) = self.shard else { return };
        if member.has_spilled() {
            // The groups in memory are incomplete; a later query may have more memory.
            self.cached_shards.stop_collecting();
        } else if member.groups().is_none_or(|groups| self.cached_shards.shards[shard].unit.has_too_many_groups(groups))
        {
            self.cached_shards.mark_uncacheable();
        }
    }

    /// Hands over the groups of the current shard.
    fn hand_over_groups(&mut self, member: &mut PipelineWorker) -> engine::Result<()> {
        let (shard, parts) = (self.shard.take(), std::mem::take(&mut self.parts));
        let Some(shard) = shard.filter(|_| !self.cached_shards.has_stopped()) else { return Ok(()) };
        let groups = member.worker.take_groups()?;
        self.cached_shards.add(shard, groups, parts)
    }
}
