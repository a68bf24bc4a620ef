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
use engine::spill::{HashPartitioning, PARTITIONS, decode, encode};
use tokio::runtime::{Handle, RuntimeFlavor};
use xxhash_rust::xxh3::xxh3_64;

use super::io_error;
use crate::memory_accounting;

/// Fraction of all memory, as a divisor, for rows of all workers that wait to be written.
const BUFFER_SHARE: usize = 32;
const BUFFER_BYTES_MIN: usize = 64 << 10;
const BUFFER_BYTES_MAX: usize = 8 << 20;

/// Approximate maximum bytes of a piece before compression.
pub(super) const SPILL_BLOCK_BYTES: usize = 256 << 10;
/// Approximate maximum rows of a piece.
pub(super) const SPILL_BLOCK_ROWS: usize = 1 << 16;

/// Spills the rows of one worker, partitioned.
pub(crate) struct Spiller {
    context: Arc<TaskContext>,
    partitioning: HashPartitioning,
    stop: Arc<AtomicBool>,
    /// Rows that are not written yet, by partition.
    buffered_rows: Vec<PendingRows>,
    buffered_bytes: usize,
    buffered_bytes_max: usize,
    memory: MemoryReservation,
    file: Option<SpillFileWriter>,
    parts: SpillPartitions,
}

#[derive(Default)]
struct PendingRows {
    batches: Vec<Batch>,
    bytes: usize,
}

/// File that is being written.
pub(super) struct SpillFileWriter {
    shared_file: Arc<SharedFile>,
    writer: Box<dyn SpillWriter>,
    end: u64,
}

/// Spill file, deleted when nobody reads it any more.
struct SharedFile {
    file: File,
    /// Deletes the file on drop.
    _temporary: Arc<dyn SpillFile>,
}

/// Spilled rows by partition, of one or more workers.
#[derive(Clone)]
pub(crate) struct SpillPartitions {
    pub(crate) parts: Vec<SpillPartition>,
    /// True if some row has a NULL key.
    pub(crate) has_null_keys: bool,
}

/// Rows of one partition.
#[derive(Clone, Default)]
pub(crate) struct SpillPartition {
    pub(crate) blocks: Vec<SpillBlock>,
    pub(crate) rows: usize,
    /// Bytes in files.
    pub(crate) bytes: u64,
}

/// Some rows of a partition or run, in a file.
#[derive(Clone)]
pub(crate) struct SpillBlock {
    shared_file: Arc<SharedFile>,
    start: u64,
    /// Length in the file, and decompressed.
    length: usize,
    decompressed_length: usize,
    checksum: u64,
}

impl Spiller {
    /// Returns a spiller without a file. `workers` spillers share the memory for rows that wait.
    pub(crate) fn new(
        context: &Arc<TaskContext>,
        memory: &Arc<dyn MemoryPool>,
        stop: &Arc<AtomicBool>,
        parting: HashPartitioning,
        workers: usize,
    ) -> Self {
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / BUFFER_SHARE / workers.max(1),
            _ => BUFFER_BYTES_MAX,
        };
        Self {
            context: Arc::clone(context),
            partitioning: parting,
            stop: Arc::clone(stop),
            buffered_rows: std::iter::repeat_with(PendingRows::default).take(PARTITIONS).collect(),
            buffered_bytes: 0,
            buffered_bytes_max: most.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX),
            memory: memory_accounting::reservation(memory),
            file: None,
            parts: SpillPartitions::empty(),
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
        if self.memory.size() == 0 {
            // The amount is small, and freeing memory needs it.
            self.memory.grow(self.buffered_bytes_max);
        }
        let Self { partitioning: parting, buffered_rows, buffered_bytes, parts, .. } = self;
        parts.has_null_keys |= parting.has_null(batch);
        parting.partition(batch, |part, batch| {
            let bytes = batch.copied_bytes();
            *buffered_bytes += bytes;
            parts.parts[part].rows += batch.rows;
            buffered_rows[part].bytes += bytes;
            buffered_rows[part].batches.push(batch);
            Ok(())
        })?;
        if self.buffered_bytes_max < self.buffered_bytes {
            self.write_largest(self.buffered_bytes_max / 2)
        } else {
            Ok(())
        }
    }

    /// Writes what is left and returns all partitions.
    pub(crate) fn finish(&mut self) -> engine::Result<SpillPartitions> {
        self.write_largest(0)?;
        self.file = None;
        self.memory.free();
        Ok(std::mem::replace(&mut self.parts, SpillPartitions::empty()))
    }

    /// Writes the largest partitions until at most `rest` bytes wait.
    fn write_largest(&mut self, rest: usize) -> engine::Result<()> {
        if self.buffered_bytes <= rest {
            return Ok(());
        }
        blocking(|| {
            let mut order: Vec<usize> = (0..self.buffered_rows.len()).collect();
            order.sort_by_key(|part| std::cmp::Reverse(self.buffered_rows[*part].bytes));
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(SpillFileWriter::create(&self.context)?),
            };
            let mut bytes = Vec::new();
            for part in order {
                if self.buffered_bytes <= rest {
                    break;
                }
                let buffered_rows = std::mem::take(&mut self.buffered_rows[part]);
                self.buffered_bytes -= buffered_rows.bytes;
                for batches in chunk_batches(&buffered_rows.batches) {
                    let piece = file.compress(&encode(batches)?, &mut bytes);
                    let part = &mut self.parts.parts[part];
                    part.bytes += piece.length as u64;
                    part.blocks.push(piece);
                }
            }
            file.write(&bytes)
        })
    }
}

/// Groups neighbouring batches into pieces.
fn chunk_batches(batches: &[Batch]) -> impl Iterator<Item = &[Batch]> {
    let (mut bytes, mut rows) = (0, 0);
    batches.chunk_by(move |before, next| {
        bytes += before.copied_bytes();
        rows += before.rows;
        let fits = bytes + next.copied_bytes() <= SPILL_BLOCK_BYTES && rows + next.rows <= SPILL_BLOCK_ROWS;
        if !fits {
            (bytes, rows) = (0, 0);
        }
        fits
    })
}

impl SpillFileWriter {
    /// Creates a spill file.
    pub(super) fn create(context: &TaskContext) -> engine::Result<Self> {
        let kept =
            context.runtime_env().disk_manager.create_tmp_file("spilled rows of a fragment").map_err(io_error)?;
        let path = kept.path().ok_or_else(|| io_error(io::Error::other("a spill file has no path")))?;
        let file = File::open(path).map_err(io_error)?;
        let writer = kept.open_writer().map_err(io_error)?;
        Ok(Self { shared_file: Arc::new(SharedFile { file, _temporary: kept }), writer, end: 0 })
    }

    /// Writes a piece of rows.
    pub(super) fn write_batch(&mut self, rows: &Batch) -> engine::Result<SpillBlock> {
        blocking(|| {
            let mut bytes = Vec::new();
            let piece = self.compress(&encode(std::slice::from_ref(rows))?, &mut bytes);
            self.write(&bytes)?;
            Ok(piece)
        })
    }

    fn write(&mut self, bytes: &[u8]) -> engine::Result<()> {
        self.writer.write_all(bytes).map_err(io_error)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Compresses rows and appends them to `bytes`.
    fn compress(&self, rows: &[u8], bytes: &mut Vec<u8>) -> SpillBlock {
        let compressed = lz4_flex::block::compress(rows);
        let (start, length) = (self.end + bytes.len() as u64, compressed.len());
        bytes.extend_from_slice(&compressed);
        let checksum = xxh3_64(&compressed);
        SpillBlock {
            shared_file: Arc::clone(&self.shared_file),
            start,
            length,
            decompressed_length: rows.len(),
            checksum,
        }
    }
}

impl SpillPartitions {
    /// Returns empty partitions.
    fn empty() -> Self {
        Self { parts: vec![SpillPartition::default(); PARTITIONS], has_null_keys: false }
    }

    /// Returns whether there are rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.parts.iter().any(|part| part.rows != 0)
    }

    /// Adds the rows of `others`.
    pub(crate) fn merge(mut self, others: Self) -> Self {
        for (part, other) in self.parts.iter_mut().zip(others.parts) {
            part.blocks.extend(other.blocks);
            part.rows += other.rows;
            part.bytes += other.bytes;
        }
        self.has_null_keys |= others.has_null_keys;
        self
    }

    /// Combines the partitions of all workers.
    pub(crate) fn combine(spillers: impl Iterator<Item = engine::Result<Self>>) -> engine::Result<Self> {
        let mut all = Self::empty();
        for parts in spillers {
            all = all.merge(parts?);
        }
        Ok(all)
    }

    /// Returns the total bytes and the number of non-empty partitions.
    pub(crate) fn size(&self) -> (u64, u64) {
        let there = self.parts.iter().filter(|part| part.rows != 0);
        there.fold((0, 0), |(bytes, parts), part| (bytes + part.bytes, parts + 1))
    }
}

impl SpillBlock {
    /// Returns the bytes in the file.
    pub(super) fn bytes(&self) -> u64 {
        self.length as u64
    }

    /// Reads its rows.
    pub(crate) fn read(&self) -> engine::Result<Batch> {
        blocking(|| {
            let mut bytes = vec![0; self.length];
            self.shared_file.file.read_exact_at(&mut bytes, self.start).map_err(io_error)?;
            if xxh3_64(&bytes) != self.checksum {
                return Err(damaged_error());
            }
            let rows = lz4_flex::block::decompress(&bytes, self.decompressed_length).map_err(|_| damaged_error())?;
            decode(&rows).map_err(|_| damaged_error())
        })
    }
}

fn damaged_error() -> engine::Error {
    io_error(io::Error::new(io::ErrorKind::InvalidData, "a temporary file with spilled rows is damaged"))
}

/// Runs blocking work without blocking other tasks of the runtime.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
