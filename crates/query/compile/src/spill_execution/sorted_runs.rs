//! Sorted runs on disk, written by sorts without room in memory.
//!
//! A run consists of blocks; merging holds one block of each run in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use engine::sort::{SortCollector, SortSpec, Sorter};
use engine::{Batch, ColumnData};
use scheduler::run_long;

use super::spill_file::{SPILL_BLOCK_BYTES, SPILL_BLOCK_ROWS, SpillBlock, SpillFileWriter};

/// Approximate fraction of all memory, as a divisor, for one block.
const BLOCK_SHARE: usize = 256;
const BLOCK_BYTES_MIN: usize = 4 << 10;

/// Rows that are gathered in order at a time.
const GATHER_ROWS: usize = 1 << 14;

/// Bytes of a string in memory beside its text.
const STRING_OVERHEAD_BYTES: usize = 16;

/// Writes the runs of one worker to a file.
pub(crate) struct RunWriter {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    file: Option<SpillFileWriter>,
    block_bytes: usize,
    /// Finished runs, in the order of arrival of their rows.
    runs: Vec<SortedRun>,
}

/// Sorted rows.
#[derive(Clone, Default)]
pub(crate) struct SortedRun {
    pub(super) blocks: Vec<SpillBlock>,
    /// Bytes in the file.
    pub(crate) bytes: u64,
    /// Approximate memory of the largest block.
    pub(super) block_bytes: usize,
}

/// Runs of all workers.
#[derive(Clone)]
pub(crate) struct SortedRuns {
    pub(crate) spec: Arc<SortSpec>,
    pub(crate) runs: Vec<SortedRun>,
}

impl RunWriter {
    /// Returns a writer without a file.
    pub(crate) fn new(context: &Arc<TaskContext>, stop: &Arc<AtomicBool>) -> Self {
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / BLOCK_SHARE,
            _ => SPILL_BLOCK_BYTES,
        };
        Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            file: None,
            block_bytes: most.clamp(BLOCK_BYTES_MIN, SPILL_BLOCK_BYTES),
            runs: Vec::new(),
        }
    }

    /// Returns whether there are runs.
    pub(crate) fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Sorts rows and writes them as a run.
    pub(crate) fn sort(&mut self, part: SortCollector) -> engine::Result<()> {
        let run = run_long(|| {
            let spec = Arc::clone(part.spec());
            let sorted = Sorter::new(&spec, vec![part])?.sort(&self.stop)?;
            let mut run = SortedRun::default();
            for start in (0..sorted.rows()).step_by(GATHER_ROWS) {
                let rows = sorted.batch_between(start, sorted.rows().min(start + GATHER_ROWS))?;
                self.append(&mut run, rows)?;
            }
            Ok::<_, engine::Error>(run)
        })?;
        self.runs.push(run);
        Ok(())
    }

    /// Appends rows that follow those of a run.
    pub(super) fn append(&mut self, run: &mut SortedRun, rows: Batch) -> engine::Result<()> {
        let block_rows =
            (self.block_bytes / (decoded_bytes(&rows) / rows.rows.max(1)).max(1)).clamp(1, SPILL_BLOCK_ROWS);
        for start in (0..rows.rows).step_by(block_rows) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(engine::Error::Stopped);
            }
            let block = rows.clone().slice(start, rows.rows.min(start + block_rows));
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(SpillFileWriter::create(&self.context)?),
            };
            run.block_bytes = run.block_bytes.max(decoded_bytes(&block));
            let piece = file.write_batch(&block)?;
            run.bytes += piece.bytes();
            run.blocks.push(piece);
        }
        Ok(())
    }

    /// Returns all runs that were written.
    pub(crate) fn finish(&mut self) -> Vec<SortedRun> {
        self.file = None;
        std::mem::take(&mut self.runs)
    }
}

impl SortedRun {
    /// Returns the memory for merging it: a block that is used up may stay until the next one, with its bytes, is
    /// there.
    pub(super) fn room_bytes(&self) -> usize {
        3 * self.block_bytes
    }
}

/// Returns the approximate memory of rows after they are read back: shared strings may no longer be shared.
fn decoded_bytes(batch: &Batch) -> usize {
    let shared = batch.columns.iter().map(|column| match &column.data {
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            let there = (0..batch.rows).filter(|row| column.is_valid(*row));
            there.map(|row| STRING_OVERHEAD_BYTES + strings.get(codes[row]).len()).sum()
        }
        _ => 0,
    });
    batch.copied_bytes() + shared.sum::<usize>()
}
