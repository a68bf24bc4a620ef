//! Merges runs from disk: as many at once as have room for their blocks, in several passes if needed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::Batch;
use engine::sort::{MergeStep, RunMerger, SortSpec};
use engine::window::{PartitionAggregates, PartitionBuffer};
use scheduler::{run_long, yield_if_due};

use super::sorted_runs::{RunWriter, SortedRun, SortedRuns};
use super::spill_file::SpillBlock;
use crate::explain_metrics::SpillMetrics;
use crate::memory_accounting;
use crate::run_error::RunError;
use crate::scan_reader::SourceItem;

/// Fraction of all memory, as a divisor, that the blocks of runs may take if that suffices for two runs.
const MERGE_MEMORY_SHARE: usize = 4;

/// Rows of a long partition that are aggregated and written in one turn.
const ROWS_PER_CHUNK: usize = 1 << 14;

/// Merges runs, in several passes if they are too many.
pub(crate) struct SpilledRunMerger {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    spills: SpillMetrics,
}

/// All rows of a sort in order.
pub(crate) struct MergedReader {
    merger: SpilledRunMerger,
    /// Runs that are not opened before the first row is requested, since their memory may be needed until then.
    runs: Option<SortedRuns>,
    last: Option<OpenRuns>,
}

/// Runs that are being merged.
struct OpenRuns {
    merge: RunMerger,
    blocks: Vec<std::vec::IntoIter<SpillBlock>>,
    _reservation: MemoryReservation,
}

impl SpilledRunMerger {
    pub(crate) fn new(context: &Arc<TaskContext>, stop: &Arc<AtomicBool>, spills: SpillMetrics) -> Self {
        Self { context: Arc::clone(context), stop: Arc::clone(stop), spills }
    }

    /// Merges runs until the rest can be merged at once.
    async fn open(&self, SortedRuns { spec, mut runs }: SortedRuns) -> Result<OpenRuns, RunError> {
        loop {
            // Only neighbouring runs are merged, so that the sort is stable.
            let (mut left, mut merged) = (VecDeque::from(runs), Vec::new());
            loop {
                let held = memory_accounting::reservation(&self.spills.memory(&self.context));
                let count = self.fitting_runs(&left, &held);
                let mut group: Vec<SortedRun> = left.drain(..count).collect();
                if left.is_empty() && merged.is_empty() {
                    return Ok(OpenRuns::new(&spec, group, held));
                }
                match group.pop() {
                    Some(run) if group.is_empty() && left.is_empty() => merged.push(run),
                    Some(run) if !group.is_empty() => {
                        group.push(run);
                        merged.push(self.merge_into_one(OpenRuns::new(&spec, group, held)).await?);
                    }
                    _ => return Err(engine::Error::OutOfMemory("the runs of a sort").into()),
                }
                if left.is_empty() {
                    break;
                }
            }
            runs = merged;
        }
    }

    /// Returns how many of the first runs fit in memory.
    fn fitting_runs(&self, runs: &VecDeque<SortedRun>, held: &MemoryReservation) -> usize {
        let most = match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / MERGE_MEMORY_SHARE,
            _ => usize::MAX,
        };
        let fits = |(place, run): &(usize, &SortedRun)| {
            let is_modest = *place < 2 || held.size() + run.room_bytes() <= most;
            is_modest && held.try_grow(run.room_bytes()).is_ok()
        };
        runs.iter().enumerate().take_while(fits).count()
    }

    /// Merges runs into one.
    async fn merge_into_one(&self, mut open: OpenRuns) -> Result<SortedRun, RunError> {
        let (mut writer, mut run) = (RunWriter::new(&self.context, &self.stop), SortedRun::default());
        while let Some(rows) = open.next().await? {
            writer.append(&mut run, rows)?;
        }
        self.spills.add_runs(std::slice::from_ref(&run));
        Ok(run)
    }

    /// Evaluates window functions over the merged rows and writes a new run.
    pub(crate) async fn add_windows(self, runs: SortedRuns) -> Result<SortedRuns, RunError> {
        let spec = Arc::clone(&runs.spec);
        let mut open = self.open(runs).await?;
        let held = memory_accounting::reservation(&self.spills.memory(&self.context));
        let mut pending = PartitionBuffer::new(&spec);
        let (mut writer, mut run) = (RunWriter::new(&self.context, &self.stop), SortedRun::default());
        loop {
            let next = open.next().await?;
            let is_last = next.is_none();
            if let Some(batch) = next {
                pending.push(batch);
            }
            let has_room = held.try_resize(pending.memory_bytes()).is_ok();
            if is_last || pending.is_due() || !has_room {
                run_long(|| {
                    let mut ended = pending.compute_ended(is_last)?.into_iter();
                    ended.try_for_each(|rows| writer.append(&mut run, rows))
                })?;
            }
            if is_last {
                break;
            }
            if held.try_resize(pending.memory_bytes()).is_err() {
                let is_last =
                    self.write_long_partition(&mut open, &mut pending, &held, (&mut writer, &mut run)).await?;
                if is_last {
                    break;
                }
                // At most one batch is left. If it does not fit, it is written next.
                let _ = held.try_resize(pending.memory_bytes());
            }
            yield_if_due().await;
        }
        self.spills.add_runs(std::slice::from_ref(&run));
        Ok(SortedRuns { spec: Arc::new(spec.with_windows_computed()), runs: vec![run] })
    }
}

impl SpilledRunMerger {
    /// Writes a partition that does not fit in memory in two passes: its rows go to a temporary file while they are
    /// aggregated, and then to the run together with the values. Rows of the next partition stay in `pending`; returns
    /// whether there is none.
    async fn write_long_partition(
        &self,
        open: &mut OpenRuns,
        pending: &mut PartitionBuffer,
        held: &MemoryReservation,
        (writer, run): (&mut RunWriter, &mut SortedRun),
    ) -> Result<bool, RunError> {
        let no_room = || engine::Error::OutOfMemory("the rows of a window's partition");
        let mut totals = PartitionAggregates::new(pending.spec()).ok_or_else(no_room)?;
        let (mut aside, mut rows_aside) = (RunWriter::new(&self.context, &self.stop), SortedRun::default());
        let mut batches: VecDeque<Batch> = VecDeque::new();
        for batch in pending.take_partition() {
            let starts = (0..batch.rows).step_by(ROWS_PER_CHUNK);
            batches.extend(starts.map(|start| batch.clone().slice(start, batch.rows.min(start + ROWS_PER_CHUNK))));
        }
        if batches.is_empty() {
            return Err(no_room().into());
        }
        let is_last = loop {
            let next = match batches.pop_front() {
                Some(batch) => Some(batch),
                None => {
                    held.free();
                    open.next().await?
                }
            };
            let Some(batch) = next else { break true };
            let (own, all) = (totals.add(&batch)?, batch.rows);
            if 0 < own {
                aside.append(&mut rows_aside, batch.clone().slice(0, own))?;
            }
            if own < all {
                pending.push(batch.slice(own, all));
                batches.drain(..).for_each(|batch| pending.push(batch));
                break false;
            }
            yield_if_due().await;
        };
        let values = totals.finish()?;
        for block in &rows_aside.blocks {
            let mut rows = block.read()?;
            let count = rows.rows;
            let columns = values.iter().map(|value| value.clone().repeat_scalar(count));
            rows.columns.extend(columns.collect::<engine::Result<Vec<_>>>()?);
            writer.append(run, rows)?;
            yield_if_due().await;
        }
        self.spills.add_runs(std::slice::from_ref(&rows_aside));
        Ok(is_last)
    }
}

impl OpenRuns {
    fn new(spec: &Arc<SortSpec>, runs: Vec<SortedRun>, held: MemoryReservation) -> Self {
        let merge = RunMerger::new(spec, runs.len());
        Self { merge, blocks: runs.into_iter().map(|run| run.blocks.into_iter()).collect(), _reservation: held }
    }

    /// Returns the next rows; `None` at the end.
    async fn next(&mut self) -> Result<Option<Batch>, RunError> {
        loop {
            match self.merge.next()? {
                MergeStep::Rows(batch) => return Ok(Some(batch)),
                MergeStep::NeedsBlock(run) => {
                    let block = self.blocks[run].next().map(|block| block.read()).transpose()?;
                    self.merge.add_block(run, block)?;
                    yield_if_due().await;
                }
                MergeStep::End => return Ok(None),
            }
        }
    }
}

impl MergedReader {
    pub(crate) fn new(merger: SpilledRunMerger, runs: SortedRuns) -> Self {
        Self { merger, runs: Some(runs), last: None }
    }

    /// Returns the next rows; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<SourceItem>, RunError> {
        if let Some(runs) = self.runs.take() {
            self.last = Some(self.merger.open(runs).await?);
        }
        let Some(open) = &mut self.last else { return Ok(None) };
        let rows = open.next().await?;
        if rows.is_none() {
            self.last = None;
        }
        Ok(rows.map(SourceItem::Rows))
    }
}
