//! Merges runs from disk: as many at once as have room for their blocks, in several passes if needed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::Batch;
use engine::sort::{Merge, Merged, SortSpec};
use engine::window::{ByPartition, PartitionTotals};
use scheduler::{at_length, pause};

use super::file::Piece;
use super::runs::{RunWriter, Runs, SortedRun};
use crate::ended::Ended;
use crate::measure::Spills;
use crate::memory;
use crate::source::Given;

/// Fraction of all memory, as a divisor, that the blocks of runs may take if that suffices for two runs.
const BLOCKS_SHARE: usize = 4;

/// Rows of a long partition that are aggregated and written in one turn.
const ROWS_AT_ONCE: usize = 1 << 14;

/// Merges runs, in several passes if they are too many.
pub(crate) struct Merging {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    spills: Spills,
}

/// All rows of a sort in order.
pub(crate) struct MergedBatches {
    merging: Merging,
    /// Runs that are not opened before the first row is requested, since their memory may be needed until then.
    runs: Option<Runs>,
    last: Option<OpenRuns>,
}

/// Runs that are being merged.
struct OpenRuns {
    merge: Merge,
    blocks: Vec<std::vec::IntoIter<Piece>>,
    _held: MemoryReservation,
}

impl Merging {
    pub(crate) fn new(context: &Arc<TaskContext>, stop: &Arc<AtomicBool>, spills: Spills) -> Self {
        Self { context: Arc::clone(context), stop: Arc::clone(stop), spills }
    }

    /// Merges runs until the rest can be merged at once.
    async fn open(&self, Runs { spec, mut runs }: Runs) -> Result<OpenRuns, Ended> {
        loop {
            // Only neighbouring runs are merged, so that the sort is stable.
            let (mut left, mut merged) = (VecDeque::from(runs), Vec::new());
            loop {
                let held = memory::reservation(&self.spills.memory(&self.context));
                let count = self.fitting(&left, &held);
                let mut group: Vec<SortedRun> = left.drain(..count).collect();
                if left.is_empty() && merged.is_empty() {
                    return Ok(OpenRuns::new(&spec, group, held));
                }
                match group.pop() {
                    Some(run) if group.is_empty() && left.is_empty() => merged.push(run),
                    Some(run) if !group.is_empty() => {
                        group.push(run);
                        merged.push(self.as_one(OpenRuns::new(&spec, group, held)).await?);
                    }
                    _ => return Err(engine::Error::Memory("the runs of a sort").into()),
                }
                if left.is_empty() {
                    break;
                }
            }
            runs = merged;
        }
    }

    /// Returns how many of the first runs fit in memory.
    fn fitting(&self, runs: &VecDeque<SortedRun>, held: &MemoryReservation) -> usize {
        let most = match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / BLOCKS_SHARE,
            _ => usize::MAX,
        };
        let fits = |(place, run): &(usize, &SortedRun)| {
            let is_modest = *place < 2 || held.size() + run.room_bytes() <= most;
            is_modest && held.try_grow(run.room_bytes()).is_ok()
        };
        runs.iter().enumerate().take_while(fits).count()
    }

    /// Merges runs into one.
    async fn as_one(&self, mut open: OpenRuns) -> Result<SortedRun, Ended> {
        let (mut writer, mut run) = (RunWriter::new(&self.context, &self.stop), SortedRun::default());
        while let Some(rows) = open.next().await? {
            writer.append(&mut run, rows)?;
        }
        self.spills.add_runs(std::slice::from_ref(&run));
        Ok(run)
    }

    /// Evaluates window functions over the merged rows and writes a new run.
    pub(crate) async fn with_windows(self, runs: Runs) -> Result<Runs, Ended> {
        let spec = Arc::clone(&runs.spec);
        let mut open = self.open(runs).await?;
        let held = memory::reservation(&self.spills.memory(&self.context));
        let mut pending = ByPartition::new(&spec);
        let (mut writer, mut run) = (RunWriter::new(&self.context, &self.stop), SortedRun::default());
        loop {
            let next = open.next().await?;
            let is_last = next.is_none();
            if let Some(batch) = next {
                pending.push(batch);
            }
            let has_room = held.try_resize(pending.memory_bytes()).is_ok();
            if is_last || pending.is_due() || !has_room {
                at_length(|| {
                    let mut ended = pending.ended(is_last)?.into_iter();
                    ended.try_for_each(|rows| writer.append(&mut run, rows))
                })?;
            }
            if is_last {
                break;
            }
            if held.try_resize(pending.memory_bytes()).is_err() {
                let is_last = self.with_totals(&mut open, &mut pending, &held, (&mut writer, &mut run)).await?;
                if is_last {
                    break;
                }
                // At most one batch is left. If it does not fit, it is written next.
                let _ = held.try_resize(pending.memory_bytes());
            }
            pause().await;
        }
        self.spills.add_runs(std::slice::from_ref(&run));
        Ok(Runs { spec: Arc::new(spec.of_computed()), runs: vec![run] })
    }
}

impl Merging {
    /// Writes a partition that does not fit in memory in two passes: its rows go to a temporary file while they are
    /// aggregated, and then to the run together with the values. Rows of the next partition stay in `pending`; returns
    /// whether there is none.
    async fn with_totals(
        &self,
        open: &mut OpenRuns,
        pending: &mut ByPartition,
        held: &MemoryReservation,
        (writer, run): (&mut RunWriter, &mut SortedRun),
    ) -> Result<bool, Ended> {
        let no_room = || engine::Error::Memory("the rows of a window's partition");
        let mut totals = PartitionTotals::new(pending.spec()).ok_or_else(no_room)?;
        let (mut aside, mut rows_aside) = (RunWriter::new(&self.context, &self.stop), SortedRun::default());
        let mut batches: VecDeque<Batch> = VecDeque::new();
        for batch in pending.take_partition() {
            let starts = (0..batch.rows).step_by(ROWS_AT_ONCE);
            batches.extend(starts.map(|start| batch.clone().slice(start, batch.rows.min(start + ROWS_AT_ONCE))));
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
            pause().await;
        };
        let values = totals.finish()?;
        for block in &rows_aside.blocks {
            let mut rows = block.read()?;
            let count = rows.rows;
            let columns = values.iter().map(|value| value.clone().repeated(count));
            rows.columns.extend(columns.collect::<engine::Result<Vec<_>>>()?);
            writer.append(run, rows)?;
            pause().await;
        }
        self.spills.add_runs(std::slice::from_ref(&rows_aside));
        Ok(is_last)
    }
}

impl OpenRuns {
    fn new(spec: &Arc<SortSpec>, runs: Vec<SortedRun>, held: MemoryReservation) -> Self {
        let merge = Merge::new(spec, runs.len());
        Self { merge, blocks: runs.into_iter().map(|run| run.blocks.into_iter()).collect(), _held: held }
    }

    /// Returns the next rows; `None` at the end.
    async fn next(&mut self) -> Result<Option<Batch>, Ended> {
        loop {
            match self.merge.next()? {
                Merged::Rows(batch) => return Ok(Some(batch)),
                Merged::Wants(run) => {
                    let block = self.blocks[run].next().map(|block| block.read()).transpose()?;
                    self.merge.put(run, block)?;
                    pause().await;
                }
                Merged::End => return Ok(None),
            }
        }
    }
}

impl MergedBatches {
    pub(crate) fn new(merging: Merging, runs: Runs) -> Self {
        Self { merging, runs: Some(runs), last: None }
    }

    /// Returns the next rows; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Given>, Ended> {
        if let Some(runs) = self.runs.take() {
            self.last = Some(self.merging.open(runs).await?);
        }
        let Some(open) = &mut self.last else { return Ok(None) };
        let rows = open.next().await?;
        if rows.is_none() {
            self.last = None;
        }
        Ok(rows.map(Given::Rows))
    }
}
