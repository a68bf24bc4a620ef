//! Drives a program: its pipelines one after the other, each by several workers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use engine::aggregate::{GroupRows, Groups};
use engine::join::JoinTable;
use engine::pipeline::{Border, Collected, Pipeline, Relief, Sink, Source, Step, Worker};
use engine::{BATCH_ROWS, Batch, arrow_form};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use shards::{Datum, Predicate, Test};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::plan::{Input, Lowered, OperatorId, ScanInput};
use super::source::{ScanBatches, ScanWork};
use crate::scan::{PageRun, ShardScanExec};

/// How often the operators that a program stands for ran in its place.
pub(crate) const FALLBACKS: &str = "engine_fallbacks";

/// Batches that wait for a slow reader.
const BATCHES_AHEAD: usize = 2;

/// How many rows the operators that a program stands for would have given.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    rows: Mutex<HashMap<OperatorId, u64>>,
}

impl Measured {
    pub(crate) fn rows(&self) -> HashMap<OperatorId, u64> {
        self.rows.lock().clone()
    }
}

/// Starts a program; its rows come as they are made. Dropping the stream ends it.
pub(super) fn start(
    lowered: Arc<Lowered>,
    covered: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    metrics: &ExecutionPlanMetricsSet,
    measured: &Arc<Measured>,
) -> BoxStream<'static, DfResult<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    let fallbacks = MetricBuilder::new(metrics).global_counter(FALLBACKS);
    let driver =
        AbortOnDropHandle::new(tokio::spawn(drive(lowered, covered, context, sender, fallbacks, Arc::clone(measured))));
    let reading = (receiver, Some(driver));
    let rows = stream::unfold(reading, async |(mut receiver, driver)| {
        if let Some(batch) = receiver.recv().await {
            return Some((batch, (receiver, driver)));
        }
        // All batches are here, unless the driver died.
        let error = driver?.await.err()?;
        let error = match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => DataFusionError::Execution(format!("a program was stopped: {error}")),
        };
        Some((Err(error), (receiver, None)))
    });
    rows.boxed()
}

async fn drive(
    lowered: Arc<Lowered>,
    covered: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    fallbacks: Count,
    measured: Arc<Measured>,
) {
    let sent = Arc::new(AtomicUsize::new(0));
    let stop = StopOnDrop(Arc::default());
    let run = Run {
        lowered,
        schema: covered.schema(),
        context: Arc::clone(&context),
        sender: sender.clone(),
        sent: Arc::clone(&sent),
        built: Mutex::default(),
        stop: Arc::clone(&stop.0),
        measured: Arc::clone(&measured),
        reservation: MemoryConsumer::new("engine").register(context.memory_pool()),
    };
    let ended = Arc::new(run).pipelines().await;
    let reason = match ended {
        Ok(()) => return,
        Err(Ended::Failed(error)) => {
            // A reader that has gone does not miss it.
            let _ = sender.send(Err(error)).await;
            return;
        }
        Err(Ended::Undecided(engine::Error::Stopped)) if sender.is_closed() => return,
        Err(Ended::Undecided(reason)) => reason,
    };
    fallbacks.add(1);
    // What ran in its place counts for itself.
    measured.rows.lock().clear();
    tracing::debug!(%reason, "the engine leaves a part of a query to its operators");
    let given = sent.load(Ordering::Relaxed);
    let outcome = match execute_stream(covered, context) {
        Ok(rows) => instead(rows, &sender, given).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        let _ = sender.send(Err(error)).await;
    } else if 0 < given {
        let error = format!("a part of the rows was given before the engine gave up: {reason}");
        let _ = sender.send(Err(DataFusionError::Internal(error))).await;
    }
}

/// The rows of the operators themselves; where some of the engine's were given already, only what goes wrong.
async fn instead(
    mut rows: SendableRecordBatchStream,
    sender: &mpsc::Sender<DfResult<RecordBatch>>,
    given: usize,
) -> DfResult<()> {
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if given == 0 && sender.send(Ok(batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Tells workers, which may be busy with a batch for long, that their rows are not wanted any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Why a program has not ended well.
enum Ended {
    /// The engine does not decide.
    Undecided(engine::Error),
    /// What comes from outside has failed.
    Failed(DataFusionError),
}

impl From<engine::Error> for Ended {
    fn from(error: engine::Error) -> Self {
        Self::Undecided(error)
    }
}

impl From<DataFusionError> for Ended {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}

/// What an earlier pipeline has made.
#[derive(Clone)]
enum Built {
    Table(Arc<JoinTable>),
    Groups(Arc<GroupRows>),
}

/// A program that runs.
struct Run {
    lowered: Arc<Lowered>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<DfResult<RecordBatch>>,
    /// Batches that were given.
    sent: Arc<AtomicUsize>,
    /// By pipeline.
    built: Mutex<Vec<Option<Built>>>,
    stop: Arc<AtomicBool>,
    measured: Arc<Measured>,
    /// Tables, and groups of pipelines that have ended.
    reservation: MemoryReservation,
}

/// What the workers of a pipeline share.
enum Share {
    Scan(Arc<ScanWork>, PageRun),
    Foreign(Mutex<Vec<SendableRecordBatchStream>>),
    Groups(Arc<GroupRows>, AtomicUsize),
}

/// One worker's share of a source.
enum Batches {
    Scan(Box<ScanBatches>),
    Foreign(Arc<Share>, Option<SendableRecordBatchStream>),
    Groups(Arc<Share>),
}

impl Run {
    async fn pipelines(self: Arc<Self>) -> Result<(), Ended> {
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

    /// Counts what has gone through a pipeline.
    fn measure(&self, number: usize, workers: &[(usize, Worker)], share: &Share) {
        let mut rows = self.measured.rows.lock();
        for mark in &self.lowered.marks[number] {
            let came = workers.iter().map(|(_, worker)| worker.rows().get(mark.step).copied().unwrap_or(0));
            *rows.entry(mark.operator).or_default() += came.sum::<u64>();
        }
        if let (Share::Scan(work, _), Source::Input(input)) = (share, self.lowered.program.pipelines[number].source)
            && let Input::Scan(input) = &self.lowered.inputs[input]
        {
            let passed = work.passed.load(Ordering::Relaxed);
            let removed = work.removed.load(Ordering::Relaxed);
            *rows.entry(OperatorId::of(input.scan.as_ref())).or_default() += passed + removed;
            if let Some(filter) = input.filter {
                *rows.entry(filter).or_default() += passed;
            }
        }
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

    /// What is to be divided, among how many workers.
    fn share(&self, source: Source, most: usize) -> Result<(Share, usize), Ended> {
        match source {
            Source::Groups(number) => {
                let built = self.built.lock();
                let Some(Built::Groups(groups)) = built.get(number).and_then(Option::as_ref) else {
                    return Err(engine::Error::Form("groups that are not there yet").into());
                };
                let parts = groups.rows().div_ceil(BATCH_ROWS * 4).clamp(1, most);
                Ok((Share::Groups(Arc::clone(groups), AtomicUsize::new(0)), parts))
            }
            Source::Input(number) => match &self.lowered.inputs[number] {
                Input::Scan(input) => {
                    let scan = scan_of(input)?;
                    let parts = scan.part_count().clamp(1, most);
                    Ok((self.scan(input, scan), parts))
                }
                Input::Foreign(plan) => {
                    let partitions = plan.properties().output_partitioning().partition_count();
                    let streams = (0..partitions).map(|number| plan.execute(number, Arc::clone(&self.context)));
                    let streams = streams.collect::<DfResult<Vec<_>>>()?;
                    Ok((Share::Foreign(Mutex::new(streams)), partitions.max(1)))
                }
            },
        }
    }

    fn scan(&self, input: &ScanInput, scan: &ShardScanExec) -> Share {
        let built = self.built.lock();
        let keys = input.keys.iter().filter_map(|(column, pipeline, key)| match built.get(*pipeline)?.as_ref()? {
            Built::Table(table) => Some((*column, table.key_filter(*key)?)),
            Built::Groups(_) => None,
        });
        let keys: Vec<_> = keys.collect();
        let columns = &scan.scan.columns;
        let known = keys.iter().filter(|(_, filter)| !filter.keeps_nulls()).map(|(column, filter)| {
            let (min, max) = filter.bounds();
            let datum = |value: i64| match columns[*column].sql_type.arrow_type() {
                DataType::Decimal128(..) => Datum::Decimal(value.into()),
                _ => Datum::Int(value),
            };
            let test = if min <= max { Test::Between(datum(min), datum(max)) } else { Test::Any(Vec::new()) };
            Predicate { column: columns[*column].id, test }
        });
        let pages = scan.pages(known.collect(), BATCH_ROWS);
        let (filters, wanted) = (input.filters.clone(), input.wanted.clone());
        let (passed, removed) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = ScanWork { schema: scan.schema(), filters, keys, wanted, passed, removed };
        Share::Scan(Arc::new(work), pages)
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

fn scan_of(input: &ScanInput) -> Result<&ShardScanExec, Ended> {
    input.scan.downcast_ref::<ShardScanExec>().ok_or_else(|| engine::Error::Form("a scan").into())
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

impl Batches {
    fn of(share: &Arc<Share>, number: usize) -> Self {
        match &**share {
            Share::Scan(work, pages) => Self::Scan(Box::new(ScanBatches::new(work, pages.worker(number)))),
            Share::Foreign(_) => Self::Foreign(Arc::clone(share), None),
            Share::Groups(..) => Self::Groups(Arc::clone(share)),
        }
    }

    async fn next(&mut self) -> Result<Option<Batch>, Ended> {
        match self {
            Self::Scan(batches) => Ok(batches.next().await??),
            Self::Foreign(share, current) => {
                let Share::Foreign(streams) = &**share else { return Ok(None) };
                loop {
                    if current.is_none() {
                        *current = streams.lock().pop();
                    }
                    let Some(stream) = current else { return Ok(None) };
                    match stream.next().await.transpose()? {
                        Some(batch) if batch.num_rows() == 0 => {}
                        Some(batch) => {
                            let columns = batch.columns().iter().map(arrow_form::column);
                            let columns = columns.collect::<engine::Result<Vec<_>>>()?;
                            return Ok(Some(Batch { rows: batch.num_rows(), columns }));
                        }
                        None => *current = None,
                    }
                }
            }
            Self::Groups(share) => {
                let Share::Groups(groups, next) = &**share else { return Ok(None) };
                let start = next.fetch_add(BATCH_ROWS, Ordering::Relaxed);
                if groups.rows() <= start {
                    return Ok(None);
                }
                Ok(Some(groups.part(start, groups.rows().min(start + BATCH_ROWS))?))
            }
        }
    }
}
