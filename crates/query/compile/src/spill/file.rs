//! Spill files: rows in partitions or runs.
//!
//! A worker has one file for all of its partitions or runs: pieces of them in any order, each compressed. Offsets and
//! checksums of pieces exist in memory only. A file is deleted when its last piece is dropped; files of a killed server
//! are deleted at the next start.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{SpillFile, SpillWriter};
use engine::Batch;
use engine::spill::{PARTS, Parting, decode, encode};
use tokio::runtime::{Handle, RuntimeFlavor};
use xxhash_rust::xxh3::xxh3_64;

use super::failed;
use crate::memory;

/// Fraction of all memory, as a divisor, for rows of all workers that wait to be written.
const WAITING_SHARE: usize = 32;
const WAITING_MIN: usize = 64 << 10;
const WAITING_MAX: usize = 8 << 20;

/// Approximate maximum bytes of a piece before compression.
pub(super) const PIECE_BYTES: usize = 256 << 10;
/// Approximate maximum rows of a piece.
pub(super) const PIECE_ROWS: usize = 1 << 16;

/// Spills the rows of one worker, partitioned.
pub(crate) struct Spiller {
    context: Arc<TaskContext>,
    parting: Parting,
    stop: Arc<AtomicBool>,
    /// Rows that are not written yet, by partition.
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    waiting_max: usize,
    held: MemoryReservation,
    file: Option<OpenFile>,
    parts: Parts,
}

#[derive(Default)]
struct Waiting {
    batches: Vec<Batch>,
    bytes: usize,
}

/// File that is being written.
pub(super) struct OpenFile {
    stored: Arc<Stored>,
    writer: Box<dyn SpillWriter>,
    end: u64,
}

/// Spill file, deleted when nobody reads it any more.
struct Stored {
    file: File,
    /// Deletes the file on drop.
    _kept: Arc<dyn SpillFile>,
}

/// Spilled rows by partition, of one or more workers.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) parts: Vec<Part>,
    /// True if some row has a NULL key.
    pub(crate) has_null_keys: bool,
}

/// Rows of one partition.
#[derive(Clone, Default)]
pub(crate) struct Part {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) rows: usize,
    /// Bytes in files.
    pub(crate) bytes: u64,
}

/// Some rows of a partition or run, in a file.
#[derive(Clone)]
pub(crate) struct Piece {
    stored: Arc<Stored>,
    start: u64,
    /// Length in the file, and decompressed.
    length: usize,
    whole: usize,
    checksum: u64,
}

impl Spiller {
    /// Returns a spiller without a file. `workers` spillers share the memory for rows that wait.
    pub(crate) fn new(
        context: &Arc<TaskContext>,
        memory: &Arc<dyn MemoryPool>,
        stop: &Arc<AtomicBool>,
        parting: Parting,
        workers: usize,
    ) -> Self {
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / WAITING_SHARE / workers.max(1),
            _ => WAITING_MAX,
        };
        Self {
            context: Arc::clone(context),
            parting,
            stop: Arc::clone(stop),
            waiting: std::iter::repeat_with(Waiting::default).take(PARTS).collect(),
            waiting_bytes: 0,
            waiting_max: most.clamp(WAITING_MIN, WAITING_MAX),
            held: memory::reservation(memory),
            file: None,
            parts: Parts::none(),
        }
    }

    /// Returns whether it has received rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.parts.has_rows()
    }

    /// Adds rows to their partitions.
    pub(crate) fn push(&mut self, batch: &Batch) -> engine::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(engine::Error::Stopped);
        }
        if self.held.size() == 0 {
            // The amount is small, and freeing memory needs it.
            self.held.grow(self.waiting_max);
        }
        let Self { parting, waiting, waiting_bytes, parts, .. } = self;
        parts.has_null_keys |= parting.has_null(batch);
        parting.divide(batch, |part, batch| {
            let bytes = batch.bytes_copied();
            *waiting_bytes += bytes;
            parts.parts[part].rows += batch.rows;
            waiting[part].bytes += bytes;
            waiting[part].batches.push(batch);
            Ok(())
        })?;
        if self.waiting_max < self.waiting_bytes { self.write(self.waiting_max / 2) } else { Ok(()) }
    }

    /// Writes what is left and returns all partitions.
    pub(crate) fn finish(&mut self) -> engine::Result<Parts> {
        self.write(0)?;
        self.file = None;
        self.held.free();
        Ok(std::mem::replace(&mut self.parts, Parts::none()))
    }

    /// Writes the largest partitions until at most `rest` bytes wait.
    fn write(&mut self, rest: usize) -> engine::Result<()> {
        if self.waiting_bytes <= rest {
            return Ok(());
        }
        blocking(|| {
            let mut order: Vec<usize> = (0..self.waiting.len()).collect();
            order.sort_by_key(|part| std::cmp::Reverse(self.waiting[*part].bytes));
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(OpenFile::create(&self.context)?),
            };
            let mut bytes = Vec::new();
            for part in order {
                if self.waiting_bytes <= rest {
                    break;
                }
                let waiting = std::mem::take(&mut self.waiting[part]);
                self.waiting_bytes -= waiting.bytes;
                for batches in pieces(&waiting.batches) {
                    let piece = file.piece(&encode(batches)?, &mut bytes);
                    let part = &mut self.parts.parts[part];
                    part.bytes += piece.length as u64;
                    part.pieces.push(piece);
                }
            }
            file.write(&bytes)
        })
    }
}

/// Groups neighbouring batches into pieces.
fn pieces(batches: &[Batch]) -> impl Iterator<Item = &[Batch]> {
    let (mut bytes, mut rows) = (0, 0);
    batches.chunk_by(move |before, next| {
        bytes += before.bytes_copied();
        rows += before.rows;
        let fits = bytes + next.bytes_copied() <= PIECE_BYTES && rows + next.rows <= PIECE_ROWS;
        if !fits {
            (bytes, rows) = (0, 0);
        }
        fits
    })
}

impl OpenFile {
    /// Creates a spill file.
    pub(super) fn create(context: &TaskContext) -> engine::Result<Self> {
        let kept = context.runtime_env().disk_manager.create_tmp_file("spilled rows of a fragment").map_err(failed)?;
        let path = kept.path().ok_or_else(|| failed(io::Error::other("a spill file has no path")))?;
        let file = File::open(path).map_err(failed)?;
        let writer = kept.open_writer().map_err(failed)?;
        Ok(Self { stored: Arc::new(Stored { file, _kept: kept }), writer, end: 0 })
    }

    /// Writes a piece of rows.
    pub(super) fn put(&mut self, rows: &Batch) -> engine::Result<Piece> {
        blocking(|| {
            let mut bytes = Vec::new();
            let piece = self.piece(&encode(std::slice::from_ref(rows))?, &mut bytes);
            self.write(&bytes)?;
            Ok(piece)
        })
    }

    fn write(&mut self, bytes: &[u8]) -> engine::Result<()> {
        self.writer.write_all(bytes).map_err(failed)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Compresses rows and appends them to `bytes`.
    fn piece(&self, rows: &[u8], bytes: &mut Vec<u8>) -> Piece {
        let compressed = lz4_flex::block::compress(rows);
        let (start, length) = (self.end + bytes.len() as u64, compressed.len());
        bytes.extend_from_slice(&compressed);
        let checksum = xxh3_64(&compressed);
        Piece { stored: Arc::clone(&self.stored), start, length, whole: rows.len(), checksum }
    }
}

impl Parts {
    /// Returns empty partitions.
    fn none() -> Self {
        Self { parts: vec![Part::default(); PARTS], has_null_keys: false }
    }

    /// Returns whether there are rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.parts.iter().any(|part| part.rows != 0)
    }

    /// Adds the rows of `others`.
    pub(crate) fn and(mut self, others: Self) -> Self {
        for (part, other) in self.parts.iter_mut().zip(others.parts) {
            part.pieces.extend(other.pieces);
            part.rows += other.rows;
            part.bytes += other.bytes;
        }
        self.has_null_keys |= others.has_null_keys;
        self
    }

    /// Combines the partitions of all workers.
    pub(crate) fn of(spillers: impl Iterator<Item = engine::Result<Self>>) -> engine::Result<Self> {
        let mut all = Self::none();
        for parts in spillers {
            all = all.and(parts?);
        }
        Ok(all)
    }

    /// Returns the total bytes and the number of non-empty partitions.
    pub(crate) fn size(&self) -> (u64, u64) {
        let there = self.parts.iter().filter(|part| part.rows != 0);
        there.fold((0, 0), |(bytes, parts), part| (bytes + part.bytes, parts + 1))
    }
}

impl Piece {
    /// Returns the bytes in the file.
    pub(super) fn bytes(&self) -> u64 {
        self.length as u64
    }

    /// Reads its rows.
    pub(crate) fn read(&self) -> engine::Result<Batch> {
        blocking(|| {
            let mut bytes = vec![0; self.length];
            self.stored.file.read_exact_at(&mut bytes, self.start).map_err(failed)?;
            if xxh3_64(&bytes) != self.checksum {
                return Err(damaged());
            }
            let rows = lz4_flex::block::decompress(&bytes, self.whole).map_err(|_| damaged())?;
            decode(&rows).map_err(|_| damaged())
        })
    }
}

fn damaged() -> engine::Error {
    failed(io::Error::new(io::ErrorKind::InvalidData, "a temporary file with spilled rows is damaged"))
}

/// Runs blocking work without blocking other tasks of the runtime.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
