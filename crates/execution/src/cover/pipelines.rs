//! Drives a program: its pipelines one after the other, each by several workers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::aggregate::{GroupRows, Groups};
use engine::join::JoinTable;
use engine::pipeline::{Border, Collected, Pipeline, Relief, Sink, Step, Worker};
use parking_lot::Mutex;

use super::measure::Measured;
use super::output::Output;
use super::plan::Lowered;
use super::run::Ended;
use super::share::{Batches, Share};
use super::source::Given;
use super::workers::{self, Member};
use crate::threads::{at_length, pause};

/// The part of all memory that a filter of a scan may take.
const FILTER_SHARE: usize = 64;

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
    /// For what pipelines that have ended have built.
    pub(super) held: Mutex<Vec<MemoryReservation>>,
}

/// What an earlier pipeline has made.
#[derive(Clone)]
pub(super) enum Built {
    Table(Arc<JoinTable>),
    Groups(Arc<GroupRows>),
}

impl Run {
    /// Runs all.
    pub(super) async fn pipelines(self: Arc<Self>) -> Result<(), Ended> {
        let pipelines = &self.lowered.program.pipelines;
        self.built.lock().resize(pipelines.len(), None);
        self.ahead.lock().resize_with(pipelines.len(), Vec::new);
        for (number, pipeline) in pipelines.iter().enumerate() {
            let built = self.pipeline(number, pipeline).await?;
            self.built.lock()[number] = built;
        }
        Ok(())
    }

    async fn pipeline(self: &Arc<Self>, number: usize, pipeline: &Pipeline) -> Result<Option<Built>, Ended> {
        let pipeline = Arc::new(pipeline.clone());
        let most = self.context.session_config().target_partitions().max(1);
        let (share, count) = self.share(pipeline.source, most)?;
        let share = Arc::new(share);
        let gives_rest = |step: &Step| matches!(step, Step::Probe { spec, .. } if spec.kind.gives_rest());
        let rests = pipeline.steps.iter().enumerate().filter(|(_, step)| gives_rest(step)).map(|(number, _)| number);
        let rests: Vec<usize> = rests.collect();
        let mut members = std::mem::take(&mut self.ahead.lock()[number]);
        let count = count.max(members.len());
        for number in members.len()..count {
            members.push(self.member(&pipeline, number, self.output.relief())?);
        }
        let ahead = self.lowered.ahead[number];
        if let Some(reader) = ahead {
            let reader = Arc::new(self.lowered.program.pipelines[reader].clone());
            for member in &mut members {
                let next = self.member(&reader, member.number, None)?;
                member.worker.lead_to(next.worker);
                member.held_ahead = Some(next.held);
            }
        }
        members =
            workers::each(members, &self.stop, |member| Arc::clone(self).work(member, Arc::clone(&share))).await?;
        // What a build side has to give is known when all have probed it.
        for step in rests {
            members = workers::each(members, &self.stop, |member| Arc::clone(self).rest(member, step, count)).await?;
        }
        self.measure(number, &members, &share);
        drop(share);
        if let Some(reader) = ahead {
            let begun = members.iter_mut().filter_map(|member| {
                let (worker, held) = (member.worker.take_next()?, member.held_ahead.take()?);
                Some(Member { number: member.number, worker, held, held_ahead: None })
            });
            self.ahead.lock()[reader] = begun.collect();
        }
        at_length(|| self.finish(&pipeline.sink, members))
    }

    fn member(&self, pipeline: &Arc<Pipeline>, number: usize, relief: Option<Box<Relief>>) -> Result<Member, Ended> {
        let built = self.built.lock();
        let table = |number: usize| match built.get(number).and_then(Option::as_ref) {
            Some(Built::Table(table)) => Some(Arc::clone(table)),
            _ => None,
        };
        let held = Arc::new(workers::reservation(&self.context));
        let border = Border::new(Arc::clone(&self.stop), relief, workers::room(&held));
        Ok(Member { number, worker: Worker::new(pipeline, table, border)?, held, held_ahead: None })
    }

    async fn work(self: Arc<Self>, mut member: Member, share: Arc<Share>) -> Result<Member, Ended> {
        // What groups have given that were complete before its turn.
        self.give(&mut member.worker).await?;
        let mut batches = Batches::of(&share, member.number);
        while let Some(batch) = batches.next().await? {
            match batch {
                Given::Rows(batch) => member.worker.push(batch)?,
                Given::EndOfPage => member.worker.end_stretch()?,
            }
            self.give(&mut member.worker).await?;
            pause().await;
        }
        Ok(member)
    }

    async fn rest(self: Arc<Self>, mut member: Member, step: usize, parts: usize) -> Result<Member, Ended> {
        member.worker.push_rest(step, member.number, parts)?;
        self.give(&mut member.worker).await?;
        Ok(member)
    }

    /// Gives what has reached the end of the program.
    async fn give(&self, worker: &mut Worker) -> Result<(), Ended> {
        self.output.give(worker.take_rows()).await
    }

    /// What filters of scans may take: little of what there is.
    fn filter_bytes_max(&self) -> usize {
        match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / FILTER_SHARE,
            _ => usize::MAX / 8,
        }
    }

    fn finish(&self, sink: &Sink, members: Vec<Member>) -> Result<Option<Built>, Ended> {
        let (mut groups, mut builds): (Vec<Groups>, Vec<_>) = (Vec::new(), Vec::new());
        // What is collected counts until the whole of it does.
        let mut held = Vec::with_capacity(members.len());
        for member in members {
            match member.worker.finish() {
                Collected::Groups(part) => groups.push(*part),
                Collected::Build(part) => builds.push(*part),
                Collected::Rows(_) => {}
            }
            held.push(member.held);
        }
        let whole = workers::reservation(&self.context);
        let reserve = |bytes| whole.try_resize(bytes).map_err(|_| engine::Error::Memory("a table or groups"));
        let built = match sink {
            Sink::Rows => return Ok(None),
            Sink::Build(spec) => {
                reserve(JoinTable::room_bytes(&builds))?;
                let table = JoinTable::finish(Arc::clone(spec), builds, self.filter_bytes_max())?;
                drop(held);
                reserve(table.memory_bytes())?;
                Built::Table(Arc::new(table))
            }
            Sink::Groups(_) => {
                // The largest takes the others in.
                groups.sort_by_key(Groups::len);
                let mut all = groups.pop().ok_or(engine::Error::Form("groups of nobody"))?;
                for part in groups {
                    // Its keys are translated in a copy, and may all be new.
                    reserve(whole.size() + 2 * part.memory_bytes())?;
                    all.merge(part)?;
                }
                reserve(all.memory_bytes())?;
                let rows = all.finish()?;
                drop(held);
                reserve(rows.memory_bytes())?;
                Built::Groups(Arc::new(rows))
            }
        };
        self.held.lock().push(whole);
        Ok(Some(built))
    }
}
