//! Drives a program: its pipelines one after the other, each by several workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use engine::aggregate::{GroupRows, Groups};
use engine::join::JoinTable;
use engine::pipeline::{Border, Collected, Pipeline, Relief, Sink, Step, Worker};
use engine::{Batch, arrow_form};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use super::measure::Measured;
use super::plan::Lowered;
use super::run::Ended;
use super::share::{Batches, Share};
use super::workers::{self, Member};

/// A program that runs.
pub(super) struct Run {
    pub(super) lowered: Arc<Lowered>,
    pub(super) schema: SchemaRef,
    pub(super) context: Arc<TaskContext>,
    pub(super) sender: mpsc::Sender<DfResult<RecordBatch>>,
    /// Batches that were given.
    pub(super) sent: Arc<AtomicUsize>,
    /// By pipeline.
    pub(super) built: Mutex<Vec<Option<Built>>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) measured: Arc<Measured>,
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
        let members = (0..count).map(|number| self.member(&pipeline, number));
        let mut members = members.collect::<Result<Vec<_>, Ended>>()?;
        members =
            workers::each(members, &self.stop, |member| Arc::clone(self).work(member, Arc::clone(&share))).await?;
        // What a build side has to give is known when all have probed it.
        for step in rests {
            members = workers::each(members, &self.stop, |member| Arc::clone(self).rest(member, step, count)).await?;
        }
        self.measure(number, &members, &share);
        drop(share);
        self.finish(&pipeline.sink, members)
    }

    fn member(self: &Arc<Self>, pipeline: &Arc<Pipeline>, number: usize) -> Result<Member, Ended> {
        let built = self.built.lock();
        let table = |number: usize| match built.get(number).and_then(Option::as_ref) {
            Some(Built::Table(table)) => Some(Arc::clone(table)),
            _ => None,
        };
        let held = Arc::new(workers::reservation(&self.context));
        Ok(Member { number, worker: Worker::new(pipeline, table, self.border(&held))?, held })
    }

    /// Where one batch becomes many, they are given before its end; that needs other threads for whoever reads them.
    fn border(self: &Arc<Self>, held: &Arc<MemoryReservation>) -> Border {
        let runtime = Handle::current();
        let may_wait = matches!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
        let run = Arc::clone(self);
        let relief: Box<Relief> = Box::new(move |batches| {
            let given = tokio::task::block_in_place(|| runtime.block_on(run.give_all(batches)));
            given.map_err(|_| engine::Error::Stopped)
        });
        Border { stop: Arc::clone(&self.stop), relief: may_wait.then_some(relief), room: Some(workers::room(held)) }
    }

    async fn work(self: Arc<Self>, mut member: Member, share: Arc<Share>) -> Result<Member, Ended> {
        let mut batches = Batches::of(&share, member.number);
        while let Some(batch) = batches.next().await? {
            member.worker.push(batch)?;
            self.give(&mut member.worker).await?;
            tokio::task::consume_budget().await;
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
        self.give_all(worker.take_rows()).await
    }

    async fn give_all(&self, batches: Vec<Batch>) -> Result<(), Ended> {
        for batch in batches {
            let batch = self.arrays(&batch)?;
            self.sent.fetch_add(1, Ordering::Relaxed);
            if self.sender.send(Ok(batch)).await.is_err() {
                return Err(engine::Error::Stopped.into());
            }
        }
        Ok(())
    }

    fn arrays(&self, batch: &Batch) -> engine::Result<RecordBatch> {
        let columns = batch.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| arrow_form::array(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<engine::Result<Vec<_>>>()?,
            &options,
        )?)
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
                let table = JoinTable::finish(Arc::clone(spec), builds)?;
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
