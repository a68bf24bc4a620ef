//! Drives a fragment: its pipelines in order, each on several workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::common::ScalarValue;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};
use engine::Batch;
use engine::aggregate::{AggregateSpec, GroupRows};
use engine::join::{JoinSpec, JoinTable};
use engine::pipeline::{Border, Collected, Now, Pipeline, Relief, Sink, Source, Spill, Step, Worker};
use engine::sort::SortedRows;
use engine::spill::Parting;
use parking_lot::Mutex;
use scheduler::pause;

use crate::ended::Ended;
use crate::measure::{Measured, timed};
use crate::memory;
use crate::output::Output;
use crate::plan::Lowered;
use crate::reuse::{Collecting, Reuse, unclustered};
use crate::share::{Batches, Share};
use crate::source::Given;
use crate::spill::{JoinParts, Parts, RunWriter, Runs, Spiller, no_rows, parting_of_groups, partings_of_join};
use crate::stage::Stage;
use crate::top::Top;
use crate::workers::{self, Member, Own};

/// A running fragment.
pub(super) struct Run {
    pub(super) lowered: Arc<Lowered>,
    pub(super) context: Arc<TaskContext>,
    pub(super) output: Arc<Output>,
    /// Results of finished pipelines, by pipeline.
    pub(super) built: Mutex<Vec<Option<Built>>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) measured: Arc<Measured>,
    /// Clock.
    pub(super) now: Arc<Now>,
    /// Workers that received groups before their pipeline's turn, by pipeline.
    pub(super) ahead: Mutex<Vec<Vec<Member>>>,
    /// Memory of `built`, by pipeline.
    pub(super) held: Mutex<Vec<Option<MemoryReservation>>>,
    /// Spilled probe rows of the inputs of a union, by the pipeline that built the hash table. Used if the build side
    /// is on disk and outputs unmatched rows.
    pub(super) probe_parts: Mutex<Vec<Option<Parts>>>,
    /// Sink states of the inputs of a union so far, with their memory and files.
    pub(super) begun: Mutex<Vec<(Collected, Own)>>,
    /// Best top-k bound so far that scans have received, for the sort in progress.
    pub(super) best: Mutex<Option<ScalarValue>>,
    /// Row counters of LIMITs, by their numbers.
    pub(super) limits: Arc<[AtomicU64]>,
}

/// Result of a pipeline.
#[derive(Clone)]
pub(super) enum Built {
    Table(Arc<JoinTable>),
    Groups(Arc<GroupRows>),
    /// Build side without room in memory, partitioned by its keys.
    BuildParts(Arc<JoinSpec>, Arc<Parts>),
    /// Groups without room in memory, partitioned by their keys.
    GroupParts(Arc<AggregateSpec>, Arc<Parts>),
    Sorted(Arc<SortedRows>),
    /// Sorted rows without room in memory, as runs.
    Runs(Runs),
}

impl Run {
    /// Runs all pipelines.
    pub(super) async fn pipelines(self: Arc<Self>) -> Result<(), Ended> {
        let pipelines = &self.lowered.program.pipelines;
        self.built.lock().resize(pipelines.len(), None);
        self.held.lock().resize_with(pipelines.len(), || None);
        self.ahead.lock().resize_with(pipelines.len(), Vec::new);
        self.probe_parts.lock().resize_with(pipelines.len(), || None);
        self.lowered.tops.iter().try_for_each(|(_, top)| top.forget())?;
        for (number, pipeline) in pipelines.iter().enumerate() {
            let (built, held) = self.pipeline(number, pipeline).await?;
            self.built.lock()[number] = built;
            self.held.lock()[number] = held;
            self.release(number, pipeline);
        }
        Ok(())
    }

    /// Returns the result of an earlier pipeline.
    pub(super) fn built(&self, number: usize) -> Option<Built> {
        self.built.lock().get(number).cloned().flatten()
    }

    /// Releases results that a finished pipeline was the last to read.
    fn release(&self, number: usize, pipeline: &Pipeline) {
        let probed = pipeline.steps.iter().filter_map(|step| match step {
            Step::Probe { built_by, .. } if self.probes_last(number, *built_by) => Some(*built_by),
            _ => None,
        });
        let read = match pipeline.source {
            Source::Groups(number) | Source::Sorted(number) => Some(number),
            Source::Input(_) => None,
        };
        for number in probed.chain(read) {
            self.built.lock()[number] = None;
            self.held.lock()[number] = None;
        }
    }

    /// Runs one pipeline, stage by stage, and returns its result with its memory.
    async fn pipeline(
        self: &Arc<Self>,
        number: usize,
        pipeline: &Pipeline,
    ) -> Result<(Option<Built>, Option<MemoryReservation>), Ended> {
        let reuse = self.reuse(number, pipeline);
        let changed = reuse.is_some().then(|| unclustered(pipeline));
        let pipeline = changed.as_ref().unwrap_or(pipeline);
        let stages = Stage::all(pipeline, |built_by| self.is_in_parts(built_by));
        let most = self.context.session_config().target_partitions().max(1);
        let mut probe: Option<Parts> = None;
        for stage in stages {
            let (share, count) = match probe.take() {
                // Joins do not preserve order, so nothing relies on it after the first stage.
                None => {
                    let most = if pipeline.in_order { 1 } else { most };
                    self.share(number, pipeline.source, reuse.as_deref(), most)?
                }
                Some(probe) => self.joined(number, &stage, probe, most)?,
            };
            let mut members = self.stage(number, &stage, share, count, reuse.as_ref()).await?;
            if let (Some(reuse), Some(member)) = (&reuse, members.first_mut()) {
                reuse.give_to(member).await?;
            }
            match &stage.next {
                None if pipeline.goes_on => {
                    // The next pipeline has the same sink and continues with its state.
                    let begun = members.into_iter().map(|member| (member.worker.finish(), member.own));
                    *self.begun.lock() = begun.collect();
                    return Ok((None, None));
                }
                None => {
                    *self.best.lock() = None;
                    let began_ns = (self.now)();
                    let finished = self.finish(number, &pipeline.sink, members).await;
                    self.measure_sink(number, began_ns);
                    return finished;
                }
                Some(join) => {
                    let parts = Parts::of(members.iter().filter_map(Member::spilled))?;
                    let table = self.table_after(pipeline, &stage)?;
                    let others = self.probe_parts.lock()[table].take();
                    let parts = match others {
                        Some(others) => others.and(parts),
                        None => parts,
                    };
                    if join.kind.gives_rest() && !self.probes_last(number, table) {
                        // Unmatched build rows are known only after all inputs of a union have probed: the last input
                        // continues with the rows of all.
                        self.probe_parts.lock()[table] = Some(parts);
                        return Ok((None, None));
                    }
                    probe = Some(parts);
                }
            }
        }
        Err(engine::Error::Form("a pipeline has no last stage").into())
    }

    /// Returns whether the build side of a pipeline is partitioned on disk.
    fn is_in_parts(&self, built_by: usize) -> bool {
        matches!(self.built(built_by), Some(Built::BuildParts(..)))
    }

    /// Returns the pipeline that built the table that the stage after this one probes.
    fn table_after(&self, pipeline: &Pipeline, stage: &Stage) -> Result<usize, Ended> {
        match pipeline.steps.get(stage.first + stage.pipeline.steps.len()) {
            Some(Step::Probe { built_by, .. }) => Ok(*built_by),
            _ => Err(engine::Error::Form("a stage with spilled output is not followed by a join").into()),
        }
    }

    /// Returns the partitions of the join that a stage begins with.
    fn joined(&self, number: usize, stage: &Stage, probe: Parts, most: usize) -> Result<(Share, usize), Ended> {
        let Some(Step::Probe { built_by, .. }) = stage.pipeline.steps.first() else {
            return Err(engine::Error::Form("a stage with spilled input does not begin with a join").into());
        };
        let Some(Built::BuildParts(spec, build)) = self.built(*built_by) else {
            return Err(engine::Error::Form("the build side of a spilled join is missing").into());
        };
        let spills = self.spills_of_join(number, stage.first);
        let parts = JoinParts::new(&self.context, &self.stop, &spec, (&build, probe), spills)?;
        let count = parts.len().clamp(1, most);
        Ok((Share::Joined(Arc::new(parts)), count))
    }

    /// Runs a stage: pushes all rows of its source through its steps.
    async fn stage(
        self: &Arc<Self>,
        number: usize,
        stage: &Stage,
        share: Share,
        count: usize,
        reuse: Option<&Arc<Reuse>>,
    ) -> Result<Vec<Member>, Ended> {
        let share = Arc::new(share);
        let mut members = if stage.first == 0 { std::mem::take(&mut self.ahead.lock()[number]) } else { Vec::new() };
        let begun = if stage.next.is_none() { std::mem::take(&mut *self.begun.lock()) } else { Vec::new() };
        let count = count.max(members.len()).max(begun.len());
        let mut begun = begun.into_iter();
        let memory = self.memory_of_stage(number, stage);
        for number in members.len()..count {
            members.push(self.member(stage, &memory, number, count, false, begun.next())?);
        }
        // Groups for the fragment cache stay in their hash tables until all rows have arrived.
        let ahead = self.lowered.ahead[number].filter(|_| stage.next.is_none() && reuse.is_none());
        // Groups that leave early arrive in small numbers, for which joins on disk are not suited.
        let reader = ahead.and_then(|reader| Some((reader, self.uncut(reader)?)));
        if let Some((number, reader)) = &reader {
            let memory = self.memory_of_stage(*number, reader);
            for member in &mut members {
                let next = self.member(reader, &memory, member.number, count, true, None)?;
                member.worker.lead_to(next.worker);
                member.own_ahead = Some(next.own);
            }
        }
        let limits = limits_of(stage);
        members = workers::each(members, &self.stop, |member| {
            Arc::clone(self).work(number, Arc::clone(&limits), member, Arc::clone(&share), reuse.map(Collecting::new))
        })
        .await?;
        if !self.is_limit_reached(&limits)
            && let Some(error) = members.iter_mut().find_map(|member| member.deferred_error.take())
        {
            return Err(error);
        }
        // Unmatched build rows are known once all workers have probed.
        for step in stage.rests(matches!(&*share, Share::Joined(_)), |table| self.probes_last(number, table)) {
            members = workers::each(members, &self.stop, |member| Arc::clone(self).rest(member, step, count)).await?;
        }
        self.measure(number, stage, &members, &share);
        if let Some((reader, _)) = reader {
            let begun = members.iter_mut().filter_map(|member| {
                let (worker, own) = (member.worker.take_next()?, member.own_ahead.take()?);
                Some(Member {
                    number: member.number,
                    worker,
                    own,
                    own_ahead: None,
                    source_busy: None,
                    deferred_error: None,
                })
            });
            self.ahead.lock()[reader] = begun.collect();
        }
        Ok(members)
    }

    /// Returns the top-k filter of the sort that a pipeline ends in, alone or with later inputs of the same union.
    pub(super) fn top(&self, number: usize) -> Option<&Top> {
        let mut pipelines = self.lowered.program.pipelines.iter().enumerate().skip(number);
        let (last, _) = pipelines.find(|(_, pipeline)| !pipeline.goes_on)?;
        self.lowered.tops.iter().find(|(number, _)| *number == last).map(|(_, top)| top)
    }

    /// Returns whether no later pipeline probes a hash table.
    fn probes_last(&self, number: usize, table: usize) -> bool {
        !self.lowered.program.pipelines[number + 1..].iter().any(|later| probes(later, table))
    }

    /// Returns the single stage of a pipeline, or `None` if the pipeline is cut.
    fn uncut(&self, number: usize) -> Option<Stage> {
        let pipeline = &self.lowered.program.pipelines[number];
        Stage::all(pipeline, |built_by| self.is_in_parts(built_by)).pop().filter(|stage| stage.first == 0)
    }

    /// Creates a worker of a stage. If it receives groups before its pipeline's turn (`is_ahead`), it outputs no rows
    /// until then. `begun` is the sink state of a worker of the previous input of a union.
    fn member(
        &self,
        stage: &Stage,
        memory: &Arc<dyn MemoryPool>,
        number: usize,
        count: usize,
        is_ahead: bool,
        begun: Option<(Collected, Own)>,
    ) -> Result<Member, Ended> {
        let built = |number: usize| match self.built(number)? {
            Built::Table(table) => Some(table),
            Built::BuildParts(spec, _) => no_rows(&spec).ok().map(Arc::new),
            Built::Groups(_) | Built::GroupParts(..) | Built::Sorted(_) | Built::Runs(_) => None,
        };
        let (collected, own) = begun.unzip();
        let (held, spiller, sorter) = match own {
            Some(own) => (own.held, own.spiller, own.sorter),
            None => (Arc::new(memory::reservation(memory)), None, None),
        };
        let sorts = matches!(stage.pipeline.sink, Sink::Sort(_));
        let new = || Arc::new(Mutex::new(RunWriter::new(&self.context, &self.stop)));
        let sorter = sorter.or_else(|| sorts.then(new));
        let parting = parting_of(stage, is_ahead);
        let new = |parting| Arc::new(Mutex::new(Spiller::new(&self.context, memory, &self.stop, parting, count)));
        let spiller = spiller.or_else(|| parting.map(new));
        let to_spiller = || {
            let spiller = Arc::clone(spiller.as_ref()?);
            Some(Box::new(move |batch| spiller.lock().push(&batch)) as Box<Spill>)
        };
        let gives_parts = stage.next.is_some();
        let relief = match to_spiller() {
            Some(mut give) if gives_parts => {
                let all = move |batches: Vec<Batch>| batches.into_iter().try_for_each(&mut give);
                Some(Box::new(all) as Box<Relief>)
            }
            _ if is_ahead => None,
            _ => self.output.relief(),
        };
        let spills = spiller.is_some() && !gives_parts;
        let limits = Arc::clone(&self.limits);
        let room = workers::room(&held, &self.context, spills || sorter.is_some());
        let mut border = Border::new(Arc::clone(&self.stop), relief, room, limits);
        if let Some(spill) = to_spiller().filter(|_| spills) {
            border = border.spilling_to(spill);
        }
        if let Some(sorter) = sorter.clone() {
            border = border.sorting_to(Box::new(move |part| sorter.lock().sort(part)));
        }
        border = border.timed_by(Arc::clone(&self.now));
        let mut worker = Worker::new(&stage.pipeline, built, border)?;
        if let Some(collected) = collected {
            worker = worker.beginning_with(collected);
        }
        Ok(Member {
            number,
            worker,
            own: Own { held, spiller, sorter, gives_parts },
            own_ahead: None,
            source_busy: None,
            deferred_error: None,
        })
    }

    /// Runs one worker's share of a source through the steps of the stage. If there is a LIMIT, an error of the source
    /// or of a step before the limit is deferred: the stage fails only if the limit is not reached without it. Errors
    /// raised when the source completes groups or build rows are not deferred.
    async fn work(
        self: Arc<Self>,
        number: usize,
        limits: Arc<[LimitEnd]>,
        mut member: Member,
        share: Arc<Share>,
        mut collecting: Option<Collecting>,
    ) -> Result<Member, Ended> {
        let has_limit = !limits.is_empty();
        let top = self.top(number);
        let mut told = 0;
        // Outputs rows made from groups that were complete before the pipeline's turn.
        self.give(&mut member).await?;
        let mut batches = Batches::of(&share, member.number);
        while !self.is_limit_reached(&limits) {
            let (given, busy) = timed(batches.next(), &*self.now).await;
            member.add_source(busy);
            let given = match given {
                Err(Ended::Failed(error)) if has_limit => {
                    member.deferred_error = Some(Ended::Failed(error));
                    break;
                }
                given => given?,
            };
            let Some(given) = given else { break };
            let worker = &mut member.worker;
            let pushed = match given {
                Given::Rows(batch) => worker.push(batch),
                Given::Piece(batch, matched, pass) => worker.push_piece(&batch, &matched, pass),
                Given::EndOfPage => {
                    worker.end_stretch()?;
                    Ok(())
                }
                Given::Begun(shard) => match &mut collecting {
                    Some(collecting) => collecting.begin(shard, &mut member),
                    None => Ok(()),
                },
                Given::Passed(shard) => match &collecting {
                    Some(collecting) => collecting.pass(shard),
                    None => Ok(()),
                },
                Given::Table(table) => worker.put_table(0, table),
                Given::EndOfTable(none) => {
                    worker.push_rest(0, 0, 1)?;
                    worker.put_table(0, none)
                }
            };
            let pushed = match pushed {
                Err(error) if has_limit && member.worker.may_ignore(&error) => {
                    member.deferred_error = Some(error.into());
                    Ok(())
                }
                pushed => pushed,
            };
            pushed?;
            self.give(&mut member).await?;
            if member.deferred_error.is_some() || member.worker.has_enough() {
                break;
            }
            if let Some(top) = top {
                top.tell(&member.worker, &mut told, &self.best)?;
            }
            pause().await;
        }
        if let Some(collecting) = collecting {
            collecting.end(&mut member)?;
        }
        Ok(member)
    }

    /// Returns whether one of these LIMITs lets no more rows pass.
    fn is_limit_reached(&self, limits: &[LimitEnd]) -> bool {
        limits.iter().any(|limit| {
            let counted = self.limits.get(limit.number).map_or(0, |rows| rows.load(Ordering::Relaxed));
            limit.rows <= counted
        })
    }

    /// Outputs a worker's share of the unmatched build rows of a join.
    async fn rest(self: Arc<Self>, mut member: Member, step: usize, parts: usize) -> Result<Member, Ended> {
        member.worker.push_rest(step, member.number, parts)?;
        self.give(&mut member).await?;
        Ok(member)
    }

    /// Passes on the rows at the end of a stage: to the reader, or to files if a join on disk follows.
    async fn give(&self, member: &mut Member) -> Result<(), Ended> {
        let rows = member.worker.take_rows();
        if member.own.gives_parts {
            return Ok(member.own.push(rows)?);
        }
        self.output.give(rows).await?;
        if let Collected::Rows(_) = member.worker.collected()
            && let Some(parts) = member.own.rows_spilled()?
        {
            for piece in parts.parts.iter().flat_map(|part| &part.pieces) {
                self.output.give(vec![piece.read()?]).await?;
            }
        }
        Ok(())
    }
}

/// Row count after which a LIMIT lets no more rows pass, with the number of its counter.
struct LimitEnd {
    number: usize,
    rows: u64,
}

/// Returns the LIMITs in a stage.
fn limits_of(stage: &Stage) -> Arc<[LimitEnd]> {
    let limit = |step: &Step| match step {
        Step::Limit { number, skip, fetch: Some(fetch) } => {
            Some(LimitEnd { number: *number, rows: skip.saturating_add(*fetch) })
        }
        _ => None,
    };
    stage.pipeline.steps.iter().filter_map(limit).collect()
}

/// Returns whether a pipeline probes a hash table.
fn probes(pipeline: &Pipeline, table: usize) -> bool {
    pipeline.steps.iter().any(|step| matches!(step, Step::Probe { built_by, .. } if *built_by == table))
}

/// Returns how a worker's spilled rows are partitioned; `None` if it collects little or outputs its rows.
fn parting_of(stage: &Stage, is_ahead: bool) -> Option<Parting> {
    match (&stage.next, &stage.pipeline.sink) {
        (Some(join), _) => Some(partings_of_join(join).1),
        (None, Sink::Build(spec)) => Some(partings_of_join(spec).0),
        (None, Sink::Groups(spec)) => Some(parting_of_groups(spec)).filter(|parting| !parting.keys.is_empty()),
        // Sorts spill as runs.
        (None, Sink::Sort(_)) => None,
        (None, Sink::Rows) => is_ahead.then(|| Parting { keys: Vec::new(), nulls_are_equal: true, level: 0 }),
    }
}
