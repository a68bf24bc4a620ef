//! The cache's tier on the local disk: what was packed once is read back after it left memory, or after a restart, without Parquet.
//!
//! A thread appends blocks to files of some megabytes (`segment.rs`, `record.rs`, `writer.rs`), as they are made: so that what is hot is
//! there whenever the server ends. Where it cannot keep up it leaves blocks out. The file filled longest ago goes first; what was asked
//! for there, or is worth its memory, is written again. Files are believed by their checksums alone: who finds another block than the
//! wanted one, or none, reads the object. Shards never change and their ids are random, those of files of others are hashes of what the
//! files are: a block from elsewhere is never asked for.

mod arrays;
mod index;
mod record;
mod segment;
mod texts;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;
use types::{Oid, Reserve};

use self::index::{Index, Place};
pub(super) use self::record::{RecordHead, decode, encode};
use self::writer::Writer;
use super::block::ColumnBlock;
use super::{BlockKey, CacheWishes, Memory, TierUse};

/// Blocks that may wait to be written; those beyond are not.
const WAITING_MAX: usize = 64;

/// Where blocks are kept on disk, and how many.
#[derive(Debug, Clone)]
pub struct CacheDisk {
    /// Of the cache alone.
    pub folder: PathBuf,
    pub bytes_max: u64,
    /// One of so many parts of what is free, with what files have of it, is the most: 1 is all.
    pub part: u64,
    /// The disk of the folder: twice what is reserved there is left free.
    pub reserve: Reserve,
}

/// What files may have of a disk: see [`CacheDisk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskPart {
    pub bytes_max: u64,
    pub part: u64,
}

/// The blocks in the files of a folder.
#[derive(Debug)]
pub(super) struct Disk {
    files: Arc<Files>,
    orders: SyncSender<Order>,
}

/// What the thread that writes shares with those who read.
#[derive(Debug)]
struct Files {
    settings: CacheDisk,
    /// What is said about it at present.
    most: Mutex<DiskPart>,
    index: Mutex<Index>,
    /// What the files may take at present.
    limit: AtomicU64,
}

/// A block to be written.
#[derive(Debug)]
struct Order {
    key: BlockKey,
    table: Oid,
    block: Arc<ColumnBlock>,
}

impl Disk {
    /// The tier in a folder, as far as another run has left it: files are looked through in the background.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub(super) fn open(settings: CacheDisk, memory: &Arc<Mutex<Memory>>) -> io::Result<Self> {
        let (orders, taken) = sync_channel(WAITING_MAX);
        let limit = AtomicU64::new(settings.bytes_max);
        let most = Mutex::new(DiskPart { bytes_max: settings.bytes_max, part: settings.part });
        let files = Arc::new(Files { settings, most, index: Mutex::new(Index::new()), limit });
        let writer = Writer::new(Arc::clone(&files), Arc::downgrade(memory));
        std::thread::Builder::new().name("cache-writer".to_owned()).spawn(move || writer.run(&taken))?;
        Ok(Self { files, orders })
    }

    /// Takes away what another run has left in a folder.
    pub(super) fn clear(folder: &Path) -> io::Result<()> {
        match segment::numbers(folder) {
            Ok(numbers) => numbers.into_iter().try_for_each(|number| segment::remove(folder, number)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A block, if it lies there.
    pub(super) fn find(&self, key: &BlockKey, table: Oid) -> Option<Found> {
        let place = self.files.index.lock().find(key, table)?;
        Some(Found { files: Arc::clone(&self.files), key: *key, table, place })
    }

    /// Has a block written, unless others wait already.
    pub(super) fn put(&self, key: BlockKey, table: Oid, block: &Arc<ColumnBlock>) {
        match self.orders.try_send(Order { key, table, block: Arc::clone(block) }) {
            Ok(()) | Err(TrySendError::Full(_)) => (),
            Err(TrySendError::Disconnected(_)) => tracing::debug!("the cache's writer has ended"),
        }
    }

    /// Has a block written when its turn comes. Waits for that.
    pub(super) fn put_in_turn(&self, key: BlockKey, table: Oid, block: &Arc<ColumnBlock>) {
        if self.orders.send(Order { key, table, block: Arc::clone(block) }).is_err() {
            tracing::debug!("the cache's writer has ended");
        }
    }

    pub(super) fn keep(&self, wishes: &Arc<CacheWishes>) {
        self.files.index.lock().keep(wishes);
    }

    /// Takes as much of the disk from now on: files go within a second where that is less.
    pub(super) fn set_most(&self, most: DiskPart) {
        *self.files.most.lock() = most;
    }

    pub(super) fn usage(&self) -> TierUse {
        let tables = self.files.index.lock().counts().by_table();
        TierUse { tier: "disk", bytes_max: self.files.limit.load(Ordering::Relaxed), tables }
    }
}

/// A block that lies in a file, by what is known.
#[derive(Debug)]
pub(super) struct Found {
    files: Arc<Files>,
    key: BlockKey,
    table: Oid,
    place: Place,
}

impl Found {
    /// The block, of so many rows; `None` where the file does not have it after all. Waits for the disk.
    pub(super) fn read(&self, rows: usize) -> Option<ColumnBlock> {
        let read = segment::read(&self.files.settings.folder, self.place);
        let block = match &read {
            Ok(record) => decode(record, &self.key, rows),
            Err(_) => None,
        };
        if block.is_none() {
            let (shard, segment) = (self.key.shard, self.place.segment);
            let error = read.err();
            tracing::debug!(%shard, segment, ?error, "a cached block is not where it was written; the object is read");
            self.files.index.lock().was_wrong(&self.key, self.place, self.table);
        }
        block
    }
}
