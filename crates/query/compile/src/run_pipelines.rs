//! Drives a fragment: its pipelines in order, each on several workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::common::ScalarValue;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};
use engine::Batch;
use engine::aggregate::{AggregateSpec, GroupRows};
use engine::join::{JoinHashTable, JoinSpec};
use engine::pipeline::{
    NanoClock, OutputSink, Pipeline, Sink, SinkState, Source, SpillSink, Step, Worker, WorkerContext,
};
use engine::sort::SortedRows;
use engine::spill::HashPartitioning;
use parking_lot::Mutex;
use scheduler::yield_if_due;

use crate::explain_metrics::{FragmentMetrics, time_polls};
use crate::fragment_cache::{CachedShards, ShardCollector, without_early_output};
use crate::fragment_output::Output;
use crate::memory_accounting;
use crate::pipeline_stage::PipelineStage;
use crate::pipeline_workers::{self, PipelineWorker, WorkerResources};
use crate::plan::CompiledFragment;
use crate::run_error::RunError;
use crate::scan_reader::SourceItem;
use crate::shared_source::{SharedSource, SourceReader};
use crate::spill_execution::{
    RunWriter, SortedRuns, SpillPartitions, SpilledJoin, Spiller, empty_table, group_partitioning, join_partitionings,
};
use crate::top_k::TopKFilter;

/// A running fragment.
pub(super) struct FragmentRun {
    pub(super) compiled: Arc<CompiledFragment>,
    pub(super) context: Arc<TaskContext>,
    pub(super) output: Arc<Output>,
    /// Results of finished pipelines, by pipeline.
    pub(super) results: Mutex<Vec<Option<PipelineResult>>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) fragment_metrics: Arc<FragmentMetrics>,
    /// Clock.
    pub(super) clock: Arc<NanoClock>,
    /// Workers that received groups before their pipeline's turn, by pipeline.
    pub(super) early_workers: Mutex<Vec<Vec<PipelineWorker>>>,
    /// Memory of `results`, by pipeline.
    pub(super) result_memory: Mutex<Vec<Option<MemoryReservation>>>,
    /// Spilled probe rows of the inputs of a union, by the pipeline that built the hash table. Used if the build side
    /// is on disk and outputs unmatched rows.
    pub(super) union_probe_partitions: Mutex<Vec<Option<SpillPartitions>>>,
    /// Sink states of the inputs of a union so far, with their memory and files.
    pub(super) union_sinks: Mutex<Vec<(SinkState, WorkerResources)>>,
    /// Best top-k bound so far that scans have received, for the sort in progress.
    pub(super) top_k_bound: Mutex<Option<ScalarValue>>,
    /// Row counters of LIMITs, by their numbers.
    pub(super) limit_counters: Arc<[AtomicU64]>,
}

/// Result of a pipeline.
#[derive(Clone)]
pub(super) enum PipelineResult {
    HashTable(Arc<JoinHashTable>),
    Groups(Arc<GroupRows>),
    /// Build side without room in memory, partitioned by its keys.
    BuildPartitions(Arc<JoinSpec>, Arc<SpillPartitions>),
    /// Groups without room in memory, partitioned by their keys.
    GroupPartitions(Arc<AggregateSpec>, Arc<SpillPartitions>),
    Sorted(Arc<SortedRows>),
    /// Sorted rows without room in memory, as runs.
    Runs(SortedRuns),
}

impl FragmentRun {
    /// Runs all pipelines.
    pub(super) async fn run_all(self: Arc<Self>) -> Result<(), RunError> {
        let pipelines = &self.compiled.program.pipelines;
        self.results.lock().resize(pipelines.len(), None);
        self.result_memory.lock().resize_with(pipelines.len(), || None);
        self.early_workers.lock().resize_with(pipelines.len(), Vec::new);
        self.union_probe_partitions.lock().resize_with(pipelines.len(), || None);
        self.compiled.top_k_filters.iter().try_for_each(|(_, top)| top.reset())?;
        for (number, pipeline) in pipelines.iter().enumerate() {
            let (built, held) = self.run_pipeline(number, pipeline).await?;
            self.results.lock()[number] = built;
            self.result_memory.lock()[number] = held;
            self.release(number, pipeline);
        }
        Ok(())
    }

    /// Returns the result of an earlier pipeline.
    pub(super) fn result(&self, number: usize) -> Option<PipelineResult> {
        self.results.lock().get(number).cloned().flatten()
    }

    /// Releases results that a finished pipeline was the last to read.
    fn release(&self, number: usize, pipeline: &Pipeline) {
        let probed = pipeline.steps.iter().filter_map(|step| match step {
            Step::Probe { build_pipeline: built_by, .. } if self.probes_last(number, *built_by) => Some(*built_by),
            _ => None,
        });
        let read = match pipeline.source {
            Source::Groups(number) | Source::Sorted(number) => Some(number),
            Source::Input(_) => None,
        };
        for number in probed.chain(read) {
            self.results.lock()[number] = None;
            self.result_memory.lock()[number] = None;
        }
    }

    /// Runs one pipeline, stage by stage, and returns its result with its memory.
    async fn run_pipeline(
        self: &Arc<Self>,
        number: usize,
        pipeline: &Pipeline,
    ) -> Result<(Option<PipelineResult>, Option<MemoryReservation>), RunError> {
        let reuse = self.cached_shards(number, pipeline);
        let changed = reuse.is_some().then(|| without_early_output(pipeline));
        let pipeline = changed.as_ref().unwrap_or(pipeline);
        let stages = PipelineStage::split(pipeline, |built_by| self.is_build_side_spilled(built_by));
        let most = self.context.session_config().target_partitions().max(1);
        let mut probe: Option<SpillPartitions> = None;
        for stage in stages {
            let (share, count) = match probe.take() {
                // Joins do not preserve order, so nothing relies on it after the first stage.
                None => {
                    let most = if pipeline.preserves_order { 1 } else { most };
                    self.shared_source(number, pipeline.source, reuse.as_deref(), most)?
                }
                Some(probe) => self.spilled_join_source(number, &stage, probe, most)?,
            };
            let mut members = self.run_stage(number, &stage, share, count, reuse.as_ref()).await?;
            if let (Some(reuse), Some(member)) = (&reuse, members.first_mut()) {
                reuse.add_groups_to(member).await?;
            }
            match &stage.next_join {
                None if pipeline.continues_in_next => {
                    // The next pipeline has the same sink and continues with its state.
                    let begun = members.into_iter().map(|member| (member.worker.into_sink_state(), member.resources));
                    *self.union_sinks.lock() = begun.collect();
                    return Ok((None, None));
                }
                None => {
                    *self.top_k_bound.lock() = None;
                    let began_ns = (self.clock)();
                    let finished = self.merge_sinks(number, &pipeline.sink, members).await;
                    self.measure_sink(number, began_ns);
                    return finished;
                }
                Some(join) => {
                    let parts = SpillPartitions::combine(members.iter().filter_map(PipelineWorker::spilled))?;
                    let table = self.table_after(pipeline, &stage)?;
                    let others = self.union_probe_partitions.lock()[table].take();
                    let parts = match others {
                        Some(others) => others.merge(parts),
                        None => parts,
                    };
                    if join.kind.outputs_build_rows() && !self.probes_last(number, table) {
                        // Unmatched build rows are known only after all inputs of a union have probed: the last input
                        // continues with the rows of all.
                        self.union_probe_partitions.lock()[table] = Some(parts);
                        return Ok((None, None));
                    }
                    probe = Some(parts);
                }
            }
        }
        Err(engine::Error::Internal("a pipeline with a spilled join has no last stage").into())
    }

    /// Returns whether the build side of a pipeline is partitioned on disk.
    fn is_build_side_spilled(&self, built_by: usize) -> bool {
        matches!(self.result(built_by), Some(PipelineResult::BuildPartitions(..)))
    }

    /// Returns the pipeline that built the table that the stage after this one probes.
    fn table_after(&self, pipeline: &Pipeline, stage: &PipelineStage) -> Result<usize, RunError> {
        match pipeline.steps.get(stage.first + stage.pipeline.steps.len()) {
            Some(Step::Probe { build_pipeline: built_by, .. }) => Ok(*built_by),
            _ => Err(engine::Error::Internal("a pipeline stage with spilled output is not followed by a join").into()),
        }
    }

    /// Returns the partitions of the join that a stage begins with.
    fn spilled_join_source(
        &self,
        number: usize,
        stage: &PipelineStage,
        probe: SpillPartitions,
        most: usize,
    ) -> Result<(SharedSource, usize), RunError> {
        let Some(Step::Probe { build_pipeline: built_by, .. }) = stage.pipeline.steps.first() else {
            return Err(
                engine::Error::Internal("a pipeline stage with spilled input does not begin with a join").into()
            );
        };
        let Some(PipelineResult::BuildPartitions(spec, build)) = self.result(*built_by) else {
            return Err(engine::Error::Internal("the build side of a spilled join is missing").into());
        };
        let spills = self.spills_of_join(number, stage.first);
        let parts = SpilledJoin::new(&self.context, &self.stop, &spec, (&build, probe), spills)?;
        let count = parts.len().clamp(1, most);
        Ok((SharedSource::SpilledJoin(Arc::new(parts)), count))
    }

    /// Runs a stage: pushes all rows of its source through its steps.
    async fn run_stage(
        self: &Arc<Self>,
        number: usize,
        stage: &PipelineStage,
        share: SharedSource,
        count: usize,
        reuse: Option<&Arc<CachedShards>>,
    ) -> Result<Vec<PipelineWorker>, RunError> {
        let share = Arc::new(share);
        let mut members =
            if stage.first == 0 { std::mem::take(&mut self.early_workers.lock()[number]) } else { Vec::new() };
        let begun = if stage.next_join.is_none() { std::mem::take(&mut *self.union_sinks.lock()) } else { Vec::new() };
        let count = count.max(members.len()).max(begun.len());
        let mut begun = begun.into_iter();
        let memory = self.memory_of_stage(number, stage);
        for number in members.len()..count {
            members.push(self.new_worker(stage, &memory, number, count, false, begun.next())?);
        }
        // Groups for the fragment cache stay in their hash tables until all rows have arrived.
        let ahead = self.compiled.early_readers[number].filter(|_| stage.next_join.is_none() && reuse.is_none());
        // Groups that leave early arrive in small numbers, for which joins on disk are not suited.
        let reader = ahead.and_then(|reader| Some((reader, self.single_stage(reader)?)));
        if let Some((number, reader)) = &reader {
            let memory = self.memory_of_stage(*number, reader);
            for member in &mut members {
                let next = self.new_worker(reader, &memory, member.number, count, true, None)?;
                member.worker.set_downstream(next.worker);
                member.downstream_resources = Some(next.resources);
            }
        }
        let limits = limits_of(stage);
        members = pipeline_workers::run_workers(members, &self.stop, |member| {
            Arc::clone(self).run_worker(
                number,
                Arc::clone(&limits),
                member,
                Arc::clone(&share),
                reuse.map(ShardCollector::new),
            )
        })
        .await?;
        if !self.is_limit_reached(&limits)
            && let Some(error) = members.iter_mut().find_map(|member| member.deferred_error.take())
        {
            return Err(error);
        }
        // Unmatched build rows are known once all workers have probed.
        for step in stage.unmatched_output_steps(matches!(&*share, SharedSource::SpilledJoin(_)), |table| {
            self.probes_last(number, table)
        }) {
            members = pipeline_workers::run_workers(members, &self.stop, |member| {
                Arc::clone(self).output_unmatched(member, step, count)
            })
            .await?;
        }
        self.measure(number, stage, &members, &share);
        if let Some((reader, _)) = reader {
            let begun = members.iter_mut().filter_map(|member| {
                let (worker, own) = (member.worker.take_downstream()?, member.downstream_resources.take()?);
                Some(PipelineWorker {
                    number: member.number,
                    worker,
                    resources: own,
                    downstream_resources: None,
                    source_busy: None,
                    deferred_error: None,
                })
            });
            self.early_workers.lock()[reader] = begun.collect();
        }
        Ok(members)
    }

    /// Returns the top-k filter of the sort that a pipeline ends in, alone or with later inputs of the same union.
    pub(super) fn top_k_filter(&self, number: usize) -> Option<&TopKFilter> {
        let mut pipelines = self.compiled.program.pipelines.iter().enumerate().skip(number);
        let (last, _) = pipelines.find(|(_, pipeline)| !pipeline.continues_in_next)?;
        self.compiled.top_k_filters.iter().find(|(number, _)| *number == last).map(|(_, top)| top)
    }

    /// Returns whether no later pipeline probes a hash table.
    fn probes_last(&self, number: usize, table: usize) -> bool {
        !self.compiled.program.pipelines[number + 1..].iter().any(|later| probes(later, table))
    }

    /// Returns the single stage of a pipeline, or `None` if the pipeline is cut.
    fn single_stage(&self, number: usize) -> Option<PipelineStage> {
        let pipeline = &self.compiled.program.pipelines[number];
        PipelineStage::split(pipeline, |built_by| self.is_build_side_spilled(built_by))
            .pop()
            .filter(|stage| stage.first == 0)
    }

    /// Creates a worker of a stage. If it receives groups before its pipeline's turn (`is_ahead`), it outputs no rows
    /// until then. `begun` is the sink state of a worker of the previous input of a union.
    fn new_worker(
        &self,
        stage: &PipelineStage,
        memory: &Arc<dyn MemoryPool>,
        number: usize,
        count: usize,
        is_ahead: bool,
        begun: Option<(SinkState, WorkerResources)>,
    ) -> Result<PipelineWorker, RunError> {
        let built = |number: usize| match self.result(number)? {
            PipelineResult::HashTable(table) => Some(table),
            PipelineResult::BuildPartitions(spec, _) => empty_table(&spec).ok().map(Arc::new),
            PipelineResult::Groups(_)
            | PipelineResult::GroupPartitions(..)
            | PipelineResult::Sorted(_)
            | PipelineResult::Runs(_) => None,
        };
        let (collected, own) = begun.unzip();
        let (held, spiller, sorter) = match own {
            Some(own) => (own.memory, own.spiller, own.sorter),
            None => (Arc::new(memory_accounting::reservation(memory)), None, None),
        };
        let sorts = matches!(stage.pipeline.sink, Sink::Sort(_));
        let new = || Arc::new(Mutex::new(RunWriter::new(&self.context, &self.stop)));
        let sorter = sorter.or_else(|| sorts.then(new));
        let parting = spill_partitioning(stage, is_ahead);
        let new = |parting| Arc::new(Mutex::new(Spiller::new(&self.context, memory, &self.stop, parting, count)));
        let spiller = spiller.or_else(|| parting.map(new));
        let to_spiller = || {
            let spiller = Arc::clone(spiller.as_ref()?);
            Some(Box::new(move |batch| spiller.lock().push(&batch)) as Box<SpillSink>)
        };
        let gives_parts = stage.next_join.is_some();
        let relief = match to_spiller() {
            Some(mut give) if gives_parts => {
                let all = move |batches: Vec<Batch>| batches.into_iter().try_for_each(&mut give);
                Some(Box::new(all) as Box<OutputSink>)
            }
            _ if is_ahead => None,
            _ => self.output.flush_callback(),
        };
        let spills = spiller.is_some() && !gives_parts;
        let limits = Arc::clone(&self.limit_counters);
        let room = pipeline_workers::memory_callback(&held, &self.context, spills || sorter.is_some());
        let mut border = WorkerContext::new(Arc::clone(&self.stop), relief, room, limits);
        if let Some(spill) = to_spiller().filter(|_| spills) {
            border = border.with_spill(spill);
        }
        if let Some(sorter) = sorter.clone() {
            border = border.with_sort_spill(Box::new(move |part| sorter.lock().sort(part)));
        }
        border = border.with_clock(Arc::clone(&self.clock));
        let mut worker = Worker::new(&stage.pipeline, built, border)?;
        if let Some(collected) = collected {
            worker = worker.with_sink_state(collected);
        }
        Ok(PipelineWorker {
            number,
            worker,
            resources: WorkerResources { memory: held, spiller, sorter, spills_all: gives_parts },
            downstream_resources: None,
            source_busy: None,
            deferred_error: None,
        })
    }

    /// Runs one worker's share of a source through the steps of the stage. If there is a LIMIT, an error of the source
    /// or of a step before the limit is deferred: the stage fails only if the limit is not reached without it. Errors
    /// raised when the source completes groups or build rows are not deferred.
    async fn run_worker(
        self: Arc<Self>,
        number: usize,
        limits: Arc<[LimitCounter]>,
        mut member: PipelineWorker,
        share: Arc<SharedSource>,
        mut collecting: Option<ShardCollector>,
    ) -> Result<PipelineWorker, RunError> {
        let has_limit = !limits.is_empty();
        let top = self.top_k_filter(number);
        let mut told = 0;
        // Outputs rows made from groups that were complete before the pipeline's turn.
        self.pass_on_rows(&mut member).await?;
        let mut batches = SourceReader::new(&share, member.number);
        while !self.is_limit_reached(&limits) {
            let (given, busy) = time_polls(batches.next(), &*self.clock).await;
            member.add_source(busy);
            let given = match given {
                Err(RunError::Failed(error)) if has_limit => {
                    member.deferred_error = Some(RunError::Failed(error));
                    break;
                }
                given => given?,
            };
            let Some(given) = given else { break };
            let worker = &mut member.worker;
            let pushed = match given {
                SourceItem::Rows(batch) => worker.push(batch),
                SourceItem::ProbeChunk(batch, matched, pass) => worker.push_chunk(&batch, &matched, pass),
                SourceItem::EndOfPage => {
                    worker.end_run()?;
                    Ok(())
                }
                SourceItem::ShardStart(shard) => match &mut collecting {
                    Some(collecting) => collecting.begin_part(shard, &mut member),
                    None => Ok(()),
                },
                SourceItem::EmptyShardPart(shard) => match &collecting {
                    Some(collecting) => collecting.skip_part(shard),
                    None => Ok(()),
                },
                SourceItem::HashTable(table) => worker.set_table(0, table),
                SourceItem::EndOfHashTable(none) => {
                    worker.push_build_rows(0, 0, 1)?;
                    worker.set_table(0, none)
                }
            };
            let pushed = match pushed {
                Err(error) if has_limit && member.worker.can_ignore_error(&error) => {
                    member.deferred_error = Some(error.into());
                    Ok(())
                }
                pushed => pushed,
            };
            pushed?;
            self.pass_on_rows(&mut member).await?;
            if member.deferred_error.is_some() || member.worker.is_limit_reached() {
                break;
            }
            if let Some(top) = top {
                top.publish_bound(&member.worker, &mut told, &self.top_k_bound)?;
            }
            yield_if_due().await;
        }
        if let Some(collecting) = collecting {
            collecting.end(&mut member)?;
        }
        Ok(member)
    }

    /// Returns whether one of these LIMITs lets no more rows pass.
    fn is_limit_reached(&self, limits: &[LimitCounter]) -> bool {
        limits.iter().any(|limit| {
            let counted = self.limit_counters.get(limit.number).map_or(0, |rows| rows.load(Ordering::Relaxed));
            limit.rows <= counted
        })
    }

    /// Outputs a worker's share of the unmatched build rows of a join.
    async fn output_unmatched(
        self: Arc<Self>,
        mut member: PipelineWorker,
        step: usize,
        parts: usize,
    ) -> Result<PipelineWorker, RunError> {
        member.worker.push_build_rows(step, member.number, parts)?;
        self.pass_on_rows(&mut member).await?;
        Ok(member)
    }

    /// Passes on the rows at the end of a stage: to the reader, or to files if a join on disk follows.
    async fn pass_on_rows(&self, member: &mut PipelineWorker) -> Result<(), RunError> {
        let rows = member.worker.take_rows();
        if member.resources.spills_all {
            return Ok(member.resources.push(rows)?);
        }
        self.output.send(rows).await?;
        if let SinkState::Rows(_) = member.worker.sink_state()
            && let Some(parts) = member.resources.rows_spilled()?
        {
            for piece in parts.parts.iter().flat_map(|part| &part.blocks) {
                self.output.send(vec![piece.read()?]).await?;
            }
        }
        Ok(())
    }
}

/// Row count after which a LIMIT lets no more rows pass, with the number of its counter.
struct LimitCounter {
    number: usize,
    rows: u64,
}

/// Returns the LIMITs in a stage.
fn limits_of(stage: &PipelineStage) -> Arc<[LimitCounter]> {
    let limit = |step: &Step| match step {
        Step::Limit { counter: number, skip, fetch: Some(fetch) } => {
            Some(LimitCounter { number: *number, rows: skip.saturating_add(*fetch) })
        }
        _ => None,
    };
    stage.pipeline.steps.iter().filter_map(limit).collect()
}

/// Returns whether a pipeline probes a hash table.
fn probes(pipeline: &Pipeline, table: usize) -> bool {
    pipeline.steps.iter().any(|step| matches!(step, Step::Probe { build_pipeline, .. } if *build_pipeline == table))
}

/// Returns how a worker's spilled rows are partitioned; `None` if it collects little or outputs its rows.
fn spill_partitioning(stage: &PipelineStage, is_ahead: bool) -> Option<HashPartitioning> {
    match (&stage.next_join, &stage.pipeline.sink) {
        (Some(join), _) => Some(join_partitionings(join).1),
        (None, Sink::Build(spec)) => Some(join_partitionings(spec).0),
        (None, Sink::Aggregate(spec)) => {
            Some(group_partitioning(spec)).filter(|partitioning| !partitioning.keys.is_empty())
        }
        // Sorts spill as runs.
        (None, Sink::Sort(_)) => None,
        (None, Sink::Output) => {
            is_ahead.then(|| HashPartitioning { keys: Vec::new(), nulls_are_equal: true, level: 0 })
        }
    }
}
