//! Disk tier of the cache: packed blocks in local files, read back after they left memory, or after a restart, without
//! decoding Parquet again.
//!
//! A background thread appends each new block to a segment file of some megabytes, so that hot blocks are on disk
//! whenever the server stops. Blocks are skipped when the thread falls behind. The oldest segment is reclaimed first;
//! its blocks that were read from disk or are hot in memory are written again. Files are validated by checksums alone:
//! a reader that does not find the wanted block reads the object. A block of another file is never mistaken for it,
//! because shards are immutable and have random ids, and ids of external files are hashes of their state.
//!
//! - `segment.rs`: the files; `block_record.rs`: the records in them.
//! - `string_compression.rs`, `arrow_ipc.rs`: storage of strings and arrays in records.
//! - `index.rs`: which blocks are where, and which segment is reclaimed next.
//! - `writer.rs`: the thread that writes and deletes files.

mod arrow_ipc;
mod block_record;
mod index;
mod segment;
mod string_compression;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;
use types::{DiskReserve, Oid};

pub(super) use self::block_record::{RecordHead, decode, encode};
use self::index::{DiskIndex, RecordLocation};
use self::writer::Writer;
use super::block::ColumnBlock;
use super::{BlockKey, MemoryTier, RetentionPolicy, TierStats};

/// Queue length of the writing thread; further blocks are not written.
const WRITE_QUEUE_LENGTH: usize = 64;

/// Settings of the disk tier.
#[derive(Debug, Clone)]
pub struct DiskTierSettings {
    /// Folder of the files; nothing else may be in it.
    pub folder: PathBuf,
    pub bytes_max: u64,
    /// Divisor: the files take at most this fraction of the free space, including their own; 1 allows all of it.
    pub space_divisor: u64,
    /// Reserve of the folder's disk; the tier leaves twice as much free.
    pub reserve: DiskReserve,
}

/// Share of the disk that the files may take: see [`DiskTierSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskQuota {
    pub bytes_max: u64,
    pub space_divisor: u64,
}

/// Disk tier in a folder.
#[derive(Debug)]
pub(super) struct DiskTier {
    shared: Arc<SharedState>,
    /// Queue of the writing thread.
    write_queue: SyncSender<WriteRequest>,
}

/// State shared between the writing thread and readers.
#[derive(Debug)]
struct SharedState {
    settings: DiskTierSettings,
    /// Current quota.
    quota: Mutex<DiskQuota>,
    index: Mutex<DiskIndex>,
    /// Current limit in bytes, from the quota and the free space.
    limit: AtomicU64,
}

/// Request to write a block.
#[derive(Debug)]
struct WriteRequest {
    key: BlockKey,
    table: Oid,
    block: Arc<ColumnBlock>,
}

impl DiskTier {
    /// Opens the tier and starts its thread, which scans the files of an earlier run in the background.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn open(settings: DiskTierSettings, memory: &Arc<Mutex<MemoryTier>>) -> io::Result<Self> {
        let (orders, taken) = sync_channel(WRITE_QUEUE_LENGTH);
        let limit = AtomicU64::new(settings.bytes_max);
        let most = Mutex::new(DiskQuota { bytes_max: settings.bytes_max, space_divisor: settings.space_divisor });
        let files = Arc::new(SharedState { settings, quota: most, index: Mutex::new(DiskIndex::new()), limit });
        let writer = Writer::new(Arc::clone(&files), Arc::downgrade(memory));
        std::thread::Builder::new().name("cache-writer".to_owned()).spawn(move || writer.run(&taken))?;
        Ok(Self { shared: files, write_queue: orders })
    }

    /// Deletes the files that an earlier run left in a folder.
    pub(super) fn clear(folder: &Path) -> io::Result<()> {
        match segment::list_segment_numbers(folder) {
            Ok(numbers) => numbers.into_iter().try_for_each(|number| segment::remove(folder, number)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Looks up a block and counts a hit or miss for `table`.
    pub(super) fn find(&self, key: &BlockKey, table: Oid) -> Option<DiskBlockHandle> {
        let location = self.shared.index.lock().find(key, table)?;
        Some(DiskBlockHandle { files: Arc::clone(&self.shared), key: *key, table, location })
    }

    /// Queues a block for writing; drops it if the queue is full.
    pub(super) fn try_enqueue(&self, key: BlockKey, table: Oid, block: &Arc<ColumnBlock>) {
        match self.write_queue.try_send(WriteRequest { key, table, block: Arc::clone(block) }) {
            Ok(()) | Err(TrySendError::Full(_)) => (),
            Err(TrySendError::Disconnected(_)) => tracing::debug!("cache writer has ended; blocks are not stored"),
        }
    }

    /// Queues a block for writing; waits while the queue is full.
    pub(super) fn enqueue(&self, key: BlockKey, table: Oid, block: &Arc<ColumnBlock>) {
        if self.write_queue.send(WriteRequest { key, table, block: Arc::clone(block) }).is_err() {
            tracing::debug!("cache writer has ended; blocks are not stored");
        }
    }

    /// Drops blocks that no table references or wants, and rejects such blocks from now on.
    pub(super) fn apply_retention(&self, policy: &Arc<RetentionPolicy>) {
        self.shared.index.lock().apply_retention(policy);
    }

    /// Changes the quota; files beyond it are deleted within a second.
    pub(super) fn set_quota(&self, most: DiskQuota) {
        *self.shared.quota.lock() = most;
    }

    /// Returns the statistics of the tier by table.
    pub(super) fn stats(&self) -> TierStats {
        let tables = self.shared.index.lock().counts().by_table();
        TierStats { tier: "disk", bytes_max: self.shared.limit.load(Ordering::Relaxed), tables }
    }
}

/// Handle to a block that a file holds according to the index.
#[derive(Debug)]
pub(super) struct DiskBlockHandle {
    files: Arc<SharedState>,
    key: BlockKey,
    table: Oid,
    location: RecordLocation,
}

impl DiskBlockHandle {
    /// Reads the block, which must have `rows` rows; `None` if the file does not hold it after all. Blocks on disk I/O.
    pub(super) fn read(&self, rows: usize) -> Option<ColumnBlock> {
        let read = segment::read(&self.files.settings.folder, self.location);
        let block = match &read {
            Ok(record) => decode(record, &self.key, rows),
            Err(_) => None,
        };
        if block.is_none() {
            let (shard, segment) = (self.key.shard, self.location.segment);
            let error = read.err();
            tracing::debug!(%shard, segment, ?error, "could not read a cached block from disk; the object is read");
            self.files.index.lock().report_failed_read(&self.key, self.location, self.table);
        }
        block
    }
}
