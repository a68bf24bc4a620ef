//! Rows computed once for all their readers: in memory, and in spill files if they are too many.
//!
//! A separate task computes them, so that they do not depend on which reader comes first, waits or stops early. The
//! task ends when all readers are gone.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayData, RecordBatch};
use arrow::buffer::Buffer;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_plan::metrics::SpillMetrics;
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Divisor of the memory limit: shared rows may take a quarter of it.
const MEMORY_DIVISOR: usize = 4;

/// Rows of a subplan, computed on first use.
pub struct SharedRows {
    operators: Arc<dyn ExecutionPlan>,
    /// Compiled form of the operators.
    compiled: OnceLock<Arc<dyn ExecutionPlan>>,
    /// Form of the operators for several partitions.
    partitioned: OnceLock<Arc<dyn ExecutionPlan>>,
    future: Mutex<Option<MaterializedRowsFuture>>,
}

/// Future of the computed rows.
pub(super) type MaterializedRowsFuture =
    Shared<BoxFuture<'static, Result<Arc<MaterializedRows>, Arc<DataFusionError>>>>;

impl SharedRows {
    pub(super) fn new(operators: Arc<dyn ExecutionPlan>) -> Self {
        Self { operators, compiled: OnceLock::new(), partitioned: OnceLock::new(), future: Mutex::default() }
    }

    /// Returns the operators that compute the rows, in their newest form.
    #[must_use]
    pub fn operators(&self) -> &Arc<dyn ExecutionPlan> {
        self.partitioned.get().or_else(|| self.compiled.get()).unwrap_or(&self.operators)
    }

    /// Replaces the operators by their form for several partitions; the first call counts.
    pub(crate) fn partition(
        &self,
        partition: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<()> {
        if self.partitioned.get().is_none() {
            let partitioned = partition(Arc::clone(self.operators()))?;
            self.partitioned.get_or_init(|| partitioned);
        }
        Ok(())
    }

    /// Replaces the operators by their compiled form; the first call counts.
    ///
    /// # Errors
    /// Errors of `cover`.
    pub fn compile(&self, cover: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>) -> Result<()> {
        if self.compiled.get().is_none() {
            let covered = cover(Arc::clone(&self.operators))?;
            self.compiled.get_or_init(|| covered);
        }
        Ok(())
    }

    /// Returns the future of the rows; the first call starts the computation.
    pub(super) fn materialize(
        &self,
        context: &Arc<TaskContext>,
        metrics: impl FnOnce() -> SpillMetrics,
    ) -> MaterializedRowsFuture {
        let mut making = self.future.lock();
        let start = || {
            let operators = Arc::clone(self.operators());
            let spill = SpillManager::new(context.runtime_env(), metrics(), operators.schema());
            let task = AbortOnDropHandle::new(tokio::spawn(compute_rows(operators, Arc::clone(context), spill)));
            let made = async move {
                match task.await {
                    Ok(made) => made.map_err(Arc::new),
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(error) => Err(Arc::new(DataFusionError::Execution(format!(
                            "the task that computes rows shared by several readers of a query was stopped: {error}"
                        )))),
                    },
                }
            };
            made.boxed().shared()
        };
        making.get_or_insert_with(start).clone()
    }
}

impl fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRows").field("operators", self.operators()).finish_non_exhaustive()
    }
}

/// Computed rows, in memory and in spill files.
pub(super) struct MaterializedRows {
    batches: Vec<RecordBatch>,
    files: Vec<Arc<dyn SpillFile>>,
    spill: SpillManager,
    /// Memory of the batches.
    _reservations: Vec<MemoryReservation>,
}

impl MaterializedRows {
    /// Returns the rows of one of `parts` readers that divide them.
    pub(super) fn reader_share(
        self: &Arc<Self>,
        number: usize,
        parts: usize,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let (kept, count) = (Arc::clone(self), self.batches.len());
        let batches = (number..count).step_by(parts).map(move |batch| Ok(kept.batches[batch].clone()));
        let kept = Arc::clone(self);
        let files = (number..self.files.len()).step_by(parts);
        let files = files.map(move |file| kept.spill.read_spill_as_stream(Arc::clone(&kept.files[file]), None));
        stream::iter(batches).chain(stream::iter(files).try_flatten()).boxed()
    }
}

async fn compute_rows(
    operators: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    spill: SpillManager,
) -> Result<Arc<MaterializedRows>> {
    let partitions = operators.output_partitioning().partition_count();
    let most = match context.memory_pool().memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / MEMORY_DIVISOR / partitions.max(1),
        _ => usize::MAX,
    };
    let mut running = JoinSet::new();
    for partition in 0..partitions {
        let rows = operators.execute(partition, Arc::clone(&context))?;
        let held = MemoryConsumer::new("shared rows").register(context.memory_pool());
        let gathered =
            CollectedRows { batches: Vec::new(), counted_buffers: HashSet::new(), reservation: held, bytes_max: most };
        let spill = spill.clone();
        running.spawn(async move { collect_partition(rows, gathered, &spill).await });
    }
    let (mut batches, mut files, mut held) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(ended) = running.join_next().await {
        let (gathered, file) = match ended {
            Ok(gathered) => gathered?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => {
                    return Err(DataFusionError::Execution(format!(
                        "the task that collects rows shared by several readers of a query failed: {error}"
                    )));
                }
            },
        };
        batches.extend(gathered.batches);
        files.extend(file);
        held.push(gathered.reservation);
    }
    Ok(Arc::new(MaterializedRows { batches, files, spill, _reservations: held }))
}

/// Collects the rows of one partition; if they exceed their memory, all of them go to a spill file.
async fn collect_partition(
    mut rows: SendableRecordBatchStream,
    mut gathered: CollectedRows,
    spill: &SpillManager,
) -> Result<(CollectedRows, Option<Arc<dyn SpillFile>>)> {
    let mut file = None;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 || (file.is_none() && gathered.try_add(&batch)) {
            continue;
        }
        let file = match &mut file {
            Some(file) => file,
            none => none.insert(spill.create_in_progress_file("rows that several parts of a query read")?),
        };
        for kept in gathered.batches.drain(..) {
            file.append_batch(&kept)?;
        }
        gathered.reservation.free();
        file.append_batch(&batch)?;
        tokio::task::consume_budget().await;
    }
    let file = file.map(|mut file| file.finish()).transpose()?.flatten();
    Ok((gathered, file))
}

/// Rows of one partition in memory.
struct CollectedRows {
    batches: Vec<RecordBatch>,
    /// Addresses of buffers that are counted: batches may share buffers.
    counted_buffers: HashSet<usize>,
    reservation: MemoryReservation,
    /// Maximum bytes in memory.
    bytes_max: usize,
}

impl CollectedRows {
    /// Adds a batch if there is memory for it, and returns whether there was.
    fn try_add(&mut self, batch: &RecordBatch) -> bool {
        let bytes = batch.columns().iter().map(|column| self.count_new_bytes(&column.to_data())).sum::<usize>();
        let has_room = self.reservation.size() + bytes <= self.bytes_max && self.reservation.try_grow(bytes).is_ok();
        if has_room {
            self.batches.push(batch.clone());
        }
        has_room
    }

    /// Returns the bytes of buffers that earlier batches do not have.
    fn count_new_bytes(&mut self, data: &ArrayData) -> usize {
        let nulls = data.nulls().map(|nulls| nulls.inner().inner());
        let buffers = data.buffers().iter().chain(nulls);
        let own: usize = buffers
            .filter(|buffer| self.counted_buffers.insert(buffer.data_ptr().addr().get()))
            .map(Buffer::capacity)
            .sum();
        own + data.child_data().iter().map(|child| self.count_new_bytes(child)).sum::<usize>()
    }
}
