//! Drives a program: its pipelines one after the other, each by several workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use engine::aggregate::{GroupRows, Groups};
use engine::join::JoinTable;
use engine::pipeline::{Border, Collected, Pipeline, Relief, Sink, Step, Worker};
use engine::{Batch, arrow_form};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::measure::Measured;
use super::plan::Lowered;
use super::run::Ended;
use super::share::{Batches, Share};

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
    /// Tables, and groups of pipelines that have ended.
    pub(super) reservation: MemoryReservation,
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
        let workers = (0..count).map(|number| self.worker(&pipeline).map(|worker| (number, worker)));
        let mut workers = workers.collect::<Result<Vec<_>, Ended>>()?;
        workers = each(workers, |number, worker| {
            let (run, share) = (Arc::clone(self), Arc::clone(&share));
            async move { run.work(number, worker, &share).await }
        })
        .await?;
        // What a build side has to give is known when all have probed it.
        for step in rests {
            workers = each(workers, |number, worker| {
                let run = Arc::clone(self);
                async move { run.rest(worker, step, number, count).await }
            })
            .await?;
        }
        self.measure(number, &workers, &share);
        drop(share);
        self.finish(&pipeline.sink, workers.into_iter().map(|(_, worker)| worker.finish()).collect())
    }

    fn worker(self: &Arc<Self>, pipeline: &Arc<Pipeline>) -> Result<Worker, Ended> {
        let built = self.built.lock();
        let table = |number: usize| match built.get(number).and_then(Option::as_ref) {
            Some(Built::Table(table)) => Some(Arc::clone(table)),
            _ => None,
        };
        Ok(Worker::new(pipeline, table, self.border())?)
    }

    /// Where one batch becomes many, they are given before its end; that needs other threads for whoever reads them.
    fn border(self: &Arc<Self>) -> Border {
        let runtime = Handle::current();
        let may_wait = matches!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
        let run = Arc::clone(self);
        let relief: Box<Relief> = Box::new(move |batches| {
            let given = tokio::task::block_in_place(|| runtime.block_on(run.give_all(batches)));
            given.map_err(|_| engine::Error::Stopped)
        });
        Border { stop: Arc::clone(&self.stop), relief: may_wait.then_some(relief) }
    }

    async fn work(&self, number: usize, mut worker: Worker, share: &Arc<Share>) -> Result<Worker, Ended> {
        let mut batches = Batches::of(share, number);
        let reservation = MemoryConsumer::new("engine").register(self.context.memory_pool());
        while let Some(batch) = batches.next().await? {
            worker.push(batch)?;
            self.give(&mut worker).await?;
            reservation.try_resize(worker.memory_bytes()).map_err(|_| engine::Error::Memory("a program"))?;
            tokio::task::consume_budget().await;
        }
        Ok(worker)
    }

    async fn rest(&self, mut worker: Worker, step: usize, part: usize, parts: usize) -> Result<Worker, Ended> {
        worker.push_rest(step, part, parts)?;
        self.give(&mut worker).await?;
        Ok(worker)
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

    fn finish(&self, sink: &Sink, collected: Vec<Collected>) -> Result<Option<Built>, Ended> {
        let (mut groups, mut builds): (Vec<Groups>, Vec<_>) = (Vec::new(), Vec::new());
        for part in collected {
            match part {
                Collected::Groups(part) => groups.push(*part),
                Collected::Build(part) => builds.push(*part),
                Collected::Rows(_) => {}
            }
        }
        let built = match sink {
            Sink::Rows => return Ok(None),
            Sink::Build(spec) => {
                let table = JoinTable::finish(Arc::clone(spec), builds)?;
                self.reserve(table.memory_bytes())?;
                Built::Table(Arc::new(table))
            }
            Sink::Groups(_) => {
                // The largest takes the others in.
                groups.sort_by_key(Groups::len);
                let mut all = groups.pop().ok_or(engine::Error::Form("groups of nobody"))?;
                self.reserve(all.memory_bytes())?;
                for part in groups {
                    all.merge(part)?;
                }
                Built::Groups(Arc::new(all.finish()?))
            }
        };
        Ok(Some(built))
    }

    fn reserve(&self, bytes: usize) -> Result<(), Ended> {
        self.reservation.try_grow(bytes).map_err(|_| engine::Error::Memory("tables and groups").into())
    }
}

/// Runs the workers beside each other; the first that fails ends all.
async fn each<F>(workers: Vec<(usize, Worker)>, run: impl Fn(usize, Worker) -> F) -> Result<Vec<(usize, Worker)>, Ended>
where
    F: Future<Output = Result<Worker, Ended>> + Send + 'static,
{
    let mut running: Vec<_> = workers
        .into_iter()
        .map(|(number, worker)| (number, AbortOnDropHandle::new(tokio::spawn(run(number, worker)))))
        .collect();
    let mut ended = Vec::with_capacity(running.len());
    for (number, handle) in running.drain(..) {
        let worker = match handle.await {
            Ok(worker) => worker?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => return Err(DataFusionError::Execution(format!("a worker was stopped: {error}")).into()),
            },
        };
        ended.push((number, worker));
    }
    Ok(ended)
}
