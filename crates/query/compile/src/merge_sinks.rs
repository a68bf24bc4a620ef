//! Merges the sinks of a pipeline's workers, in memory or partition by partition on disk.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::aggregate::{
    AggregateSpec, FlushedGroups, GroupRows, Groups, PartitionedGroups, SetEvaluation, SetPartition, StringUnifier,
    WorkerGroups,
};
use engine::join::{BuildCollector, JoinHashTable};
use engine::pipeline::{Sink, SinkState};
use parking_lot::Mutex;
use scheduler::{long_run_permit, run_long};

use crate::memory_accounting;
use crate::pipeline_workers::{self, PipelineWorker};
use crate::plan::Input;
use crate::run_error::RunError;
use crate::run_pipelines::{FragmentRun, PipelineResult};
use crate::spill_execution::SpillPartitions;

/// Fraction of all memory that the key filter of a scan may take, as a divisor.
const KEY_FILTER_MEMORY_SHARE: usize = 64;

/// Bytes from which building a hash table or merging groups is a long task for the scheduler.
const LONG_MERGE_BYTES: usize = 16 << 20;

/// Groups from which merging one partition is a long task.
const LONG_MERGE_GROUPS: usize = 1 << 17;

/// Groups from which partitions are merged in parallel, if pre-aggregation reduced the rows.
const PARTITIONED_GROUPS_MIN: usize = 1 << 16;

/// Workers from which that pays. With two, the smaller half is merged into the larger one; building new hash tables
/// from both halves took 0.54 s instead of 0.29 s in TPC-H q16.
const PARTITIONED_WORKERS_MIN: usize = 4;

impl FragmentRun {
    /// Merges the sinks of the workers, in memory if there is room, else in partitions on disk.
    pub(super) async fn merge_sinks(
        self: &Arc<Self>,
        number: usize,
        sink: &Sink,
        members: Vec<PipelineWorker>,
    ) -> Result<(Option<PipelineResult>, Option<MemoryReservation>), RunError> {
        let whole = memory_accounting::reservation(&self.memory_of_sink(number));
        let bytes = match sink {
            Sink::Output => return Ok((None, None)),
            Sink::Build(_) => {
                let builds = || members.iter().filter_map(PipelineWorker::build);
                let can_be = JoinHashTable::can_hold_rows(builds().map(BuildCollector::row_count).sum());
                can_be.then(|| JoinHashTable::estimate_build_bytes(builds()))
            }
            Sink::Aggregate(spec) => {
                // The largest hash table takes in the others, with a copy of their keys, all of which may be new.
                let sizes = members.iter().filter_map(PipelineWorker::groups).map(Groups::memory_bytes);
                let (all, largest) = sizes.fold((0, 0), |(all, largest), size| (all + size, size.max(largest)));
                // A partitioned merge holds all rows at once, in addition to its input and the hash tables of some
                // partitions; coarser grouping sets come on top.
                Some(match has_flushed(&members) {
                    true if spec.sets.is_empty() => all + all / 4,
                    true => all * 2,
                    false => (all - largest) * 2 + largest,
                })
            }
            Sink::Sort(spec) => return self.sort_rows(number, spec, members).await,
        };
        let has_spilled = members.iter().any(PipelineWorker::has_spilled);
        let has_room = !has_spilled && bytes.is_some_and(|bytes| whole.try_resize(bytes).is_ok());
        let can_spill = members.iter().all(|member| member.resources.spiller.is_some());
        if !has_room && can_spill {
            let members = self.spill_all(members).await?;
            let parts = Arc::new(SpillPartitions::combine(members.iter().filter_map(PipelineWorker::spilled))?);
            let (bytes, count) = parts.size();
            tracing::debug!(
                bytes,
                parts = count,
                "the rows of a join or aggregation exceeded memory and were spilled to files"
            );
            let built = match sink {
                Sink::Output => None,
                Sink::Build(spec) => Some(PipelineResult::BuildPartitions(Arc::clone(spec), parts)),
                Sink::Aggregate(spec) => Some(PipelineResult::GroupPartitions(Arc::clone(spec), parts)),
                Sink::Sort(_) => None,
            };
            return Ok((built, None));
        }
        if let Sink::Aggregate(spec) = sink {
            if has_flushed(&members) {
                return self.merge_by_partition(spec, members, whole).await;
            }
            let groups: usize = members.iter().filter_map(PipelineWorker::groups).map(Groups::len).sum();
            let all = members.iter().filter_map(PipelineWorker::groups).map(Groups::memory_bytes).sum::<usize>();
            if spec.sets.is_empty()
                && PARTITIONED_WORKERS_MIN <= members.len()
                && PARTITIONED_GROUPS_MIN <= groups
                && whole.try_resize(all * 2).is_ok()
            {
                return self.merge_by_partition(spec, members, whole).await;
            }
        }
        let is_long = LONG_MERGE_BYTES <= whole.size();
        let _place = if is_long { long_run_permit().await } else { None };
        let finish = || self.merge_in_memory(number, sink, members, whole);
        let (built, held) = if is_long { run_long(finish) } else { finish() }?;
        Ok((Some(built), Some(held)))
    }

    /// Spills what the workers still have in memory.
    pub(super) async fn spill_all(&self, members: Vec<PipelineWorker>) -> Result<Vec<PipelineWorker>, RunError> {
        let spill = |mut member: PipelineWorker| async move {
            member.worker.spill()?;
            Ok(member)
        };
        pipeline_workers::run_workers(members, &self.stop, spill).await
    }

    /// Merges the groups of all workers partition by partition, in parallel.
    async fn merge_by_partition(
        &self,
        spec: &Arc<AggregateSpec>,
        members: Vec<PipelineWorker>,
        whole: MemoryReservation,
    ) -> Result<(Option<PipelineResult>, Option<MemoryReservation>), RunError> {
        let _place = long_run_permit().await;
        let (mut groups, mut held) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len()));
        for member in members {
            if let SinkState::Groups(part) = member.worker.into_sink_state() {
                groups.push(Mutex::new(Some(*part)));
            }
            held.push(member.resources);
        }
        let count = groups.len();
        let put_aside = move |number: usize| {
            let part = groups[number]
                .lock()
                .take()
                .ok_or(engine::Error::Internal("the groups of a partition were taken a second time"))?;
            run_long(|| {
                Ok(part.flush_to_partitions()?.into_iter().map(FlushedGroups::partition_strings).collect::<Vec<_>>())
            })
        };
        let aside = pipeline_workers::run_numbered_tasks(count, count, &self.stop, put_aside).await?;
        let aside = aside.into_iter().collect::<engine::Result<Vec<_>>>()?.into_iter().flatten().collect();
        let divided = self.number_strings(spec, aside, count).await?;
        let rows = if spec.sets.is_empty() {
            self.for_each_partition(&divided, count, PartitionedGroups::partition_rows).await?
        } else {
            self.evaluate_grouping_sets(spec, divided, count).await?
        };
        let rows = GroupRows::concat(rows);
        drop(held);
        whole
            .try_resize(rows.memory_bytes())
            .map_err(|_| engine::Error::OutOfMemory("the groups of an aggregation"))?;
        Ok((Some(PipelineResult::Groups(Arc::new(rows))), Some(whole)))
    }

    /// Returns the flushed groups of all workers with one common numbering of their strings.
    async fn number_strings(
        &self,
        spec: &Arc<AggregateSpec>,
        aside: Vec<WorkerGroups>,
        tasks: usize,
    ) -> Result<Arc<PartitionedGroups>, RunError> {
        let common = Arc::new(StringUnifier::try_new(spec, aside)?);
        let shard = {
            let common = Arc::clone(&common);
            move |number: usize| common.unify_strings(number)
        };
        let shards = pipeline_workers::run_numbered_tasks(common.task_count(), tasks, &self.stop, shard).await?;
        let shards = shards.into_iter().collect::<engine::Result<_>>()?;
        let common = Arc::into_inner(common)
            .ok_or(engine::Error::Internal("the string dictionaries of the workers are still being unified"))?;
        Ok(Arc::new(run_long(|| common.partition_groups(shards))?))
    }

    /// Calls `make` for each partition in parallel tasks.
    async fn for_each_partition<T: Send + 'static>(
        &self,
        divided: &Arc<PartitionedGroups>,
        tasks: usize,
        make: fn(&PartitionedGroups, usize, &AtomicBool) -> engine::Result<T>,
    ) -> Result<Vec<T>, RunError> {
        let is_long = LONG_MERGE_GROUPS <= divided.flushed_groups() / divided.partitions();
        let (divided, stop) = (Arc::clone(divided), Arc::clone(&self.stop));
        let (parts, of_part) = (divided.partitions(), move |part: usize| {
            let make = || make(&divided, part, &stop);
            if is_long { run_long(make) } else { make() }
        });
        let made = pipeline_workers::run_numbered_tasks(parts, tasks, &self.stop, of_part).await?;
        Ok(made.into_iter().collect::<engine::Result<_>>()?)
    }

    /// Evaluates all grouping sets partition by partition, each coarser one from a finer one.
    async fn evaluate_grouping_sets(
        &self,
        spec: &Arc<AggregateSpec>,
        finest: Arc<PartitionedGroups>,
        tasks: usize,
    ) -> Result<Vec<GroupRows>, RunError> {
        let together = self.for_each_partition(&finest, tasks, PartitionedGroups::merge_partition).await?;
        let mut levels = SetEvaluation::new(spec, &finest, together)?;
        drop(finest);
        while let Some(coarser) = levels.next_derivation()? {
            let coarser = Arc::new(coarser);
            let (parts, of_part) = (coarser.partitions(), Arc::clone(&coarser));
            let pieces = pipeline_workers::run_numbered_tasks(parts, tasks, &self.stop, move |part| {
                of_part.group_partition(part)
            })
            .await?;
            let divided = Arc::new(coarser.partition_groups(pieces.into_iter().collect::<engine::Result<_>>()?));
            let made = self.for_each_partition(&divided, tasks, PartitionedGroups::merge_partition).await?;
            levels.add_set(&coarser, made);
        }
        let parts: Vec<_> = levels.finish()?.into_iter().map(|part| Mutex::new(Some(part))).collect();
        let count = parts.len();
        let rows = move |number: usize| {
            let part: Option<SetPartition> = parts[number].lock().take();
            part.ok_or(engine::Error::Internal("the groups of a partition were taken a second time"))?.into_rows()
        };
        let rows = pipeline_workers::run_numbered_tasks(count, tasks, &self.stop, rows).await?;
        Ok(rows.into_iter().collect::<engine::Result<_>>()?)
    }

    /// Merges the sinks of the workers into one hash table or one set of groups.
    fn merge_in_memory(
        &self,
        number: usize,
        sink: &Sink,
        members: Vec<PipelineWorker>,
        whole: MemoryReservation,
    ) -> Result<(PipelineResult, MemoryReservation), RunError> {
        let (mut groups, mut builds): (Vec<Groups>, Vec<_>) = (Vec::new(), Vec::new());
        // Each worker's memory stays accounted until the result's memory is.
        let mut held = Vec::with_capacity(members.len());
        for member in members {
            match member.worker.into_sink_state() {
                SinkState::Groups(part) => groups.push(*part),
                SinkState::Build(part) => builds.push(*part),
                SinkState::Sorting(_) | SinkState::Rows(_) => {}
            }
            held.push(member.resources);
        }
        let reserve = |bytes| {
            whole
                .try_resize(bytes)
                .map_err(|_| engine::Error::OutOfMemory("a join's hash table or the groups of an aggregation"))
        };
        let built = match sink {
            Sink::Output | Sink::Sort(_) => {
                return Err(engine::Error::Internal(
                    "a sink was to be merged that collects neither groups nor a build side",
                )
                .into());
            }
            Sink::Build(spec) => {
                let table = JoinHashTable::finish(Arc::clone(spec), builds, self.filter_bytes_max(number), &self.stop)?;
                drop(held);
                reserve(table.memory_bytes())?;
                PipelineResult::HashTable(Arc::new(table))
            }
            Sink::Aggregate(_) => {
                groups.sort_by_key(Groups::len);
                let mut all =
                    groups.pop().ok_or(engine::Error::Internal("a pipeline that groups rows has no worker"))?;
                groups.into_iter().try_for_each(|part| all.merge(part, &self.stop))?;
                reserve(all.memory_bytes())?;
                let rows = all.finish()?;
                drop(held);
                reserve(rows.memory_bytes())?;
                PipelineResult::Groups(Arc::new(rows))
            }
        };
        Ok((built, whole))
    }

    /// Returns how much memory the key filters of a pipeline's hash table may take: a small fraction, and nothing if no
    /// scan uses them.
    fn filter_bytes_max(&self, number: usize) -> usize {
        let asks = |input: &Input| matches!(input, Input::Scan(scan) if scan.keys.iter().any(|(_, built_by, _)| *built_by == number));
        if !self.compiled.inputs.iter().any(asks) {
            return 0;
        }
        match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / KEY_FILTER_MEMORY_SHARE,
            _ => usize::MAX / 8,
        }
    }
}

/// Returns whether a worker flushed its groups to radix partitions, because pre-aggregation did not reduce rows.
fn has_flushed(members: &[PipelineWorker]) -> bool {
    members.iter().filter_map(PipelineWorker::groups).any(Groups::has_flushed)
}
