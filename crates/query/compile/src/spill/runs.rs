//! What a sort has no room for: runs of rows in order, in files.
//!
//! A run is in blocks, of which those who merge runs have one of each in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use engine::sort::{SortSpec, Sorter, Sorting};
use engine::{Batch, Data};
use scheduler::at_length;

use super::file::{OpenFile, PIECE_BYTES, PIECE_ROWS, Piece};

/// The part of all memory that a block has, about.
const BLOCK_SHARE: usize = 256;
const BLOCK_BYTES_MIN: usize = 4 << 10;

/// Rows are put in order by so many, from wherever they lie.
const ROWS_AT_ONCE: usize = 1 << 14;

/// What a string takes in memory beside its text.
const STRING_BYTES: usize = 16;

/// Writes one worker's runs to a file.
pub(crate) struct RunWriter {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    file: Option<OpenFile>,
    block_bytes: usize,
    /// In the order in which their rows have come.
    runs: Vec<SortedRun>,
}

/// Rows in order.
#[derive(Clone, Default)]
pub(crate) struct SortedRun {
    pub(super) blocks: Vec<Piece>,
    /// In the file.
    pub(crate) bytes: u64,
    /// What the largest block takes in memory, roughly.
    pub(super) block_bytes: usize,
}

/// The runs of all workers.
#[derive(Clone)]
pub(crate) struct Runs {
    pub(crate) spec: Arc<SortSpec>,
    pub(crate) runs: Vec<SortedRun>,
}

impl RunWriter {
    /// Has no file yet.
    pub(crate) fn new(context: &Arc<TaskContext>, stop: &Arc<AtomicBool>) -> Self {
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / BLOCK_SHARE,
            _ => PIECE_BYTES,
        };
        Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            file: None,
            block_bytes: most.clamp(BLOCK_BYTES_MIN, PIECE_BYTES),
            runs: Vec::new(),
        }
    }

    /// Whether there are runs.
    pub(crate) fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Sorts rows and writes them as a run.
    pub(crate) fn sort(&mut self, part: Sorting) -> engine::Result<()> {
        let run = at_length(|| {
            let spec = Arc::clone(part.spec());
            let sorted = Sorter::new(&spec, vec![part])?.sorted(&self.stop)?;
            let mut run = SortedRun::default();
            for start in (0..sorted.rows()).step_by(ROWS_AT_ONCE) {
                let rows = sorted.between(start, sorted.rows().min(start + ROWS_AT_ONCE))?;
                self.append(&mut run, rows)?;
            }
            Ok::<_, engine::Error>(run)
        })?;
        self.runs.push(run);
        Ok(())
    }

    /// Writes rows that come after those of a run so far.
    pub(super) fn append(&mut self, run: &mut SortedRun, rows: Batch) -> engine::Result<()> {
        let block_rows = (self.block_bytes / (bytes_read(&rows) / rows.rows.max(1)).max(1)).clamp(1, PIECE_ROWS);
        for start in (0..rows.rows).step_by(block_rows) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(engine::Error::Stopped);
            }
            let block = rows.clone().slice(start, rows.rows.min(start + block_rows));
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(OpenFile::create(&self.context)?),
            };
            run.block_bytes = run.block_bytes.max(bytes_read(&block));
            let piece = file.put(&block)?;
            run.bytes += piece.bytes();
            run.blocks.push(piece);
        }
        Ok(())
    }

    /// All runs that it has written.
    pub(crate) fn finish(&mut self) -> Vec<SortedRun> {
        self.file = None;
        std::mem::take(&mut self.runs)
    }
}

impl SortedRun {
    /// What merging it takes in memory: a block that is used up may stay until the next is there, beside its bytes.
    pub(super) fn room_bytes(&self) -> usize {
        3 * self.block_bytes
    }
}

/// What rows take, roughly, when they have been read again: strings that they share now may not be shared then.
fn bytes_read(batch: &Batch) -> usize {
    let shared = batch.columns.iter().map(|column| match &column.data {
        Data::Codes { codes, strings } => {
            let there = (0..batch.rows).filter(|row| column.is_valid(*row));
            there.map(|row| STRING_BYTES + strings.get(codes[row]).len()).sum()
        }
        _ => 0,
    });
    batch.bytes_copied() + shared.sum::<usize>()
}
