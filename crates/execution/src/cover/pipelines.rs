//! Drives a program: its pipelines one after the other, each by several workers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::Batch;
use engine::aggregate::{AggregateSpec, GroupRows, Groups};
use engine::join::{Build, JoinSpec, JoinTable};
use engine::pipeline::{Border, Collected, Pipeline, Relief, Sink, Source, Spill, Step, Worker};
use engine::spill::Parting;
use parking_lot::Mutex;

use super::measure::Measured;
use super::output::Output;
use super::plan::Lowered;
use super::run::Ended;
use super::share::{Batches, Share};
use super::source::Given;
use super::spill::{JoinParts, Parts, Spiller, no_rows, parting_of_groups, partings_of_join};
use super::stage::Stage;
use super::workers::{self, Member, Own};
use crate::threads::{at_length, pause};

/// The part of all memory that a filter of a scan may take.
const FILTER_SHARE: usize = 64;

/// Of so much a table is made, or groups are put together, in more than a few turns.
const LONG_BYTES: usize = 16 << 20;

/// A program that runs.
pub(super) struct Run {
    pub(super) lowered: Arc<Lowered>,
    pub(super) context: Arc<TaskContext>,
    pub(super) output: Arc<Output>,
    /// By pipeline.
    pub(super) built: Mutex<Vec<Option<Built>>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) measured: Arc<Measured>,
    /// By pipeline: workers that have begun before its turn.
    pub(super) ahead: Mutex<Vec<Vec<Member>>>,
    /// By pipeline, for what it has built.
    pub(super) held: Mutex<Vec<Option<MemoryReservation>>>,
}

/// What an earlier pipeline has made.
#[derive(Clone)]
pub(super) enum Built {
    Table(Arc<JoinTable>),
    Groups(Arc<GroupRows>),
    /// A build side that had no room, in parts by its keys.
    BuildParts(Arc<JoinSpec>, Arc<Parts>),
    /// Groups that had no room, in parts by their keys.
    GroupParts(Arc<AggregateSpec>, Arc<Parts>),
}

impl Run {
    /// Runs all.
    pub(super) async fn pipelines(self: Arc<Self>) -> Result<(), Ended> {
        let pipelines = &self.lowered.program.pipelines;
        self.built.lock().resize(pipelines.len(), None);
        self.held.lock().resize_with(pipelines.len(), || None);
        self.ahead.lock().resize_with(pipelines.len(), Vec::new);
        for (number, pipeline) in pipelines.iter().enumerate() {
            let (built, held) = self.pipeline(number, pipeline).await?;
            self.built.lock()[number] = built;
            self.held.lock()[number] = held;
            self.release(pipeline);
        }
        Ok(())
    }

    /// What an earlier pipeline has made.
    pub(super) fn built(&self, number: usize) -> Option<Built> {
        self.built.lock().get(number).cloned().flatten()
    }

    /// Forgets what a pipeline that has ended was the last to read.
    fn release(&self, pipeline: &Pipeline) {
        let probed = pipeline.steps.iter().filter_map(|step| match step {
            Step::Probe { built_by, .. } => Some(*built_by),
            _ => None,
        });
        let read = match pipeline.source {
            Source::Groups(number) => Some(number),
            Source::Input(_) => None,
        };
        for number in probed.chain(read) {
            self.built.lock()[number] = None;
            self.held.lock()[number] = None;
        }
    }

    async fn pipeline(
        self: &Arc<Self>,
        number: usize,
        pipeline: &Pipeline,
    ) -> Result<(Option<Built>, Option<MemoryReservation>), Ended> {
        let stages = Stage::all(pipeline, |built_by| self.is_in_parts(built_by));
        let most = self.context.session_config().target_partitions().max(1);
        let mut probe: Option<Parts> = None;
        for stage in stages {
            let (share, count) = match probe.take() {
                None => self.share(pipeline.source, most)?,
                Some(probe) => self.joined(number, &stage, probe, most)?,
            };
            let members = self.stage(number, &stage, share, count).await?;
            match &stage.next {
                None => return self.finish(&pipeline.sink, members).await,
                Some(_) => probe = Some(Parts::of(members.iter().filter_map(Member::spilled))?),
            }
        }
        Err(engine::Error::Form("a pipeline without an end").into())
    }

    fn is_in_parts(&self, built_by: usize) -> bool {
        matches!(self.built(built_by), Some(Built::BuildParts(..)))
    }

    /// The parts of the join that a stage begins with.
    fn joined(&self, number: usize, stage: &Stage, probe: Parts, most: usize) -> Result<(Share, usize), Ended> {
        let Some(Step::Probe { built_by, .. }) = stage.pipeline.steps.first() else {
            return Err(engine::Error::Form("parts of what is no join").into());
        };
        let Some(Built::BuildParts(spec, build)) = self.built(*built_by) else {
            return Err(engine::Error::Form("a build side that is not there").into());
        };
        let spills = self.spills_of_join(number, stage.first);
        let parts = JoinParts::new(&self.context, &self.stop, &spec, (&build, probe), spills)?;
        let count = parts.len().clamp(1, most);
        Ok((Share::Joined(Arc::new(parts)), count))
    }

    /// Takes all rows of a source through the steps of a stage.
    async fn stage(
        self: &Arc<Self>,
        number: usize,
        stage: &Stage,
        share: Share,
        count: usize,
    ) -> Result<Vec<Member>, Ended> {
        let share = Arc::new(share);
        let mut members = if stage.first == 0 { std::mem::take(&mut self.ahead.lock()[number]) } else { Vec::new() };
        let count = count.max(members.len());
        for number in members.len()..count {
            members.push(self.member(stage, number, count, false)?);
        }
        let ahead = self.lowered.ahead[number].filter(|_| stage.next.is_none());
        // Rows that come now and then are not for tables in parts.
        let reader = ahead.and_then(|reader| Some((reader, self.uncut(reader)?)));
        if let Some((_, reader)) = &reader {
            for member in &mut members {
                let next = self.member(reader, member.number, count, true)?;
                member.worker.lead_to(next.worker);
                member.own_ahead = Some(next.own);
            }
        }
        members =
            workers::each(members, &self.stop, |member| Arc::clone(self).work(member, Arc::clone(&share))).await?;
        // What a build side has to give is known when all have probed it.
        for step in stage.rests(matches!(&*share, Share::Joined(_))) {
            members = workers::each(members, &self.stop, |member| Arc::clone(self).rest(member, step, count)).await?;
        }
        self.measure(number, stage, &members, &share);
        if let Some((reader, _)) = reader {
            let begun = members.iter_mut().filter_map(|member| {
                let (worker, own) = (member.worker.take_next()?, member.own_ahead.take()?);
                Some(Member { number: member.number, worker, own, own_ahead: None })
            });
            self.ahead.lock()[reader] = begun.collect();
        }
        Ok(members)
    }

    /// The only stage of a pipeline that is not cut.
    fn uncut(&self, number: usize) -> Option<Stage> {
        let pipeline = &self.lowered.program.pipelines[number];
        Stage::all(pipeline, |built_by| self.is_in_parts(built_by)).pop().filter(|stage| stage.first == 0)
    }

    /// A worker of a stage. One that begins before its turn gives no rows before it.
    fn member(&self, stage: &Stage, number: usize, count: usize, is_ahead: bool) -> Result<Member, Ended> {
        let built = |number: usize| match self.built(number)? {
            Built::Table(table) => Some(table),
            Built::BuildParts(spec, _) => no_rows(&spec).ok().map(Arc::new),
            Built::Groups(_) | Built::GroupParts(..) => None,
        };
        let held = Arc::new(workers::reservation(&self.context));
        let parting = parting_of(stage, is_ahead);
        let spiller =
            parting.map(|parting| Arc::new(Mutex::new(Spiller::new(&self.context, &self.stop, parting, count))));
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
        let can_spill = spiller.is_some() && !gives_parts;
        let mut border = Border::new(Arc::clone(&self.stop), relief, workers::room(&held, &self.context, can_spill));
        if let Some(spill) = to_spiller().filter(|_| can_spill) {
            border = border.spilling_to(spill);
        }
        let worker = Worker::new(&stage.pipeline, built, border)?;
        Ok(Member { number, worker, own: Own { _held: held, spiller, gives_parts }, own_ahead: None })
    }

    async fn work(self: Arc<Self>, mut member: Member, share: Arc<Share>) -> Result<Member, Ended> {
        // What groups have given that were complete before its turn.
        self.give(&mut member).await?;
        let mut batches = Batches::of(&share, member.number);
        while let Some(given) = batches.next().await? {
            let worker = &mut member.worker;
            match given {
                Given::Rows(batch) => worker.push(batch)?,
                Given::EndOfPage => worker.end_stretch()?,
                Given::Table(table) => worker.put_table(0, table)?,
                Given::EndOfTable(none) => {
                    worker.push_rest(0, 0, 1)?;
                    worker.put_table(0, none)?;
                }
            }
            self.give(&mut member).await?;
            pause().await;
        }
        Ok(member)
    }

    async fn rest(self: Arc<Self>, mut member: Member, step: usize, parts: usize) -> Result<Member, Ended> {
        member.worker.push_rest(step, member.number, parts)?;
        self.give(&mut member).await?;
        Ok(member)
    }

    /// Gives what has reached the end of the program, or of a stage of it.
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

    /// What filters of scans may take: little of what there is.
    fn filter_bytes_max(&self) -> usize {
        match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / FILTER_SHARE,
            _ => usize::MAX / 8,
        }
    }

    /// What the workers have collected, as a whole where there is room, and else in parts.
    async fn finish(
        self: &Arc<Self>,
        sink: &Sink,
        members: Vec<Member>,
    ) -> Result<(Option<Built>, Option<MemoryReservation>), Ended> {
        let whole = workers::reservation(&self.context);
        let bytes = match sink {
            Sink::Rows => return Ok((None, None)),
            Sink::Build(_) => {
                let builds = || members.iter().filter_map(Member::build);
                let can_be = JoinTable::can_have(builds().map(Build::rows).sum());
                can_be.then(|| JoinTable::room_bytes(builds()))
            }
            Sink::Groups(_) => {
                // The largest takes the others in, whose keys are translated in a copy, and may all be new.
                let sizes = members.iter().filter_map(Member::groups).map(Groups::memory_bytes);
                let (all, largest) = sizes.fold((0, 0), |(all, largest), size| (all + size, size.max(largest)));
                Some((all - largest) * 2 + largest)
            }
        };
        let has_spilled = members.iter().any(Member::has_spilled);
        let has_room = !has_spilled && bytes.is_some_and(|bytes| whole.try_resize(bytes).is_ok());
        let can_spill = members.iter().all(|member| member.own.spiller.is_some());
        if !has_room && can_spill {
            let spill = |mut member: Member| async move {
                member.worker.spill()?;
                Ok(member)
            };
            let members = workers::each(members, &self.stop, spill).await?;
            let parts = Arc::new(Parts::of(members.iter().filter_map(Member::spilled))?);
            let (bytes, count) = parts.size();
            tracing::debug!(bytes, parts = count, "what has no room in memory goes on from files");
            let built = match sink {
                Sink::Rows => None,
                Sink::Build(spec) => Some(Built::BuildParts(Arc::clone(spec), parts)),
                Sink::Groups(spec) => Some(Built::GroupParts(Arc::clone(spec), parts)),
            };
            return Ok((built, None));
        }
        let is_long = LONG_BYTES <= whole.size();
        let finish = || self.whole(sink, members, whole);
        let (built, held) = if is_long { at_length(finish) } else { finish() }?;
        Ok((Some(built), Some(held)))
    }

    fn whole(
        &self,
        sink: &Sink,
        members: Vec<Member>,
        whole: MemoryReservation,
    ) -> Result<(Built, MemoryReservation), Ended> {
        let (mut groups, mut builds): (Vec<Groups>, Vec<_>) = (Vec::new(), Vec::new());
        // What is collected counts until the whole of it does.
        let mut held = Vec::with_capacity(members.len());
        for member in members {
            match member.worker.finish() {
                Collected::Groups(part) => groups.push(*part),
                Collected::Build(part) => builds.push(*part),
                Collected::Rows(_) => {}
            }
            held.push(member.own);
        }
        let reserve = |bytes| whole.try_resize(bytes).map_err(|_| engine::Error::Memory("a table or groups"));
        let built = match sink {
            Sink::Rows => return Err(engine::Error::Form("rows as a whole").into()),
            Sink::Build(spec) => {
                let table = JoinTable::finish(Arc::clone(spec), builds, self.filter_bytes_max())?;
                drop(held);
                reserve(table.memory_bytes())?;
                Built::Table(Arc::new(table))
            }
            Sink::Groups(_) => {
                groups.sort_by_key(Groups::len);
                let mut all = groups.pop().ok_or(engine::Error::Form("groups of nobody"))?;
                groups.into_iter().try_for_each(|part| all.merge(part))?;
                reserve(all.memory_bytes())?;
                let rows = all.finish()?;
                drop(held);
                reserve(rows.memory_bytes())?;
                Built::Groups(Arc::new(rows))
            }
        };
        Ok((built, whole))
    }
}

/// How what a worker of a stage has no room for is divided; `None` where it collects little, or gives rows away.
fn parting_of(stage: &Stage, is_ahead: bool) -> Option<Parting> {
    match (&stage.next, &stage.pipeline.sink) {
        (Some(join), _) => Some(partings_of_join(join).1),
        (None, Sink::Build(spec)) => Some(partings_of_join(spec).0),
        (None, Sink::Groups(spec)) => Some(parting_of_groups(spec)).filter(|parting| !parting.keys.is_empty()),
        (None, Sink::Rows) => is_ahead.then(|| Parting { keys: Vec::new(), nulls_are_equal: true, level: 0 }),
    }
}
