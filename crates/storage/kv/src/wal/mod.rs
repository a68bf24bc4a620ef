//! Backend of a server: a write-ahead log makes each batch durable with one sync; a thread flushes batches to B-trees.
//!
//! Changes that are not in the B-trees yet are held in memory, in two memtables: one for the active log file and a
//! frozen one for the other file, which a thread is flushing to the trees. The files swap roles when the active file is
//! full and the frozen memtable has been flushed.
//!
//! In reading order:
//! - `log_files.rs`: the two log files, appends and recovery
//! - `record_frame.rs`: framing of records in a log file
//! - `memtable.rs`: changes in memory
//! - `merged_scan.rs`: merging of tree entries with the memtables for scans

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use redb::backends::FileBackend;
use types::Failpoint;

use crate::error::Source;
use crate::redb as trees;
use crate::{Batch, Direction, Entries, Error, KeyRange, Result, Space, TxKv};

mod log_files;
mod memtable;
mod merged_scan;
mod record_frame;
#[cfg(test)]
mod tests;

use log_files::{LogMedium, RecoveredRecords, RecoveryError, Wal};
pub(crate) use memtable::Memtable;
use merged_scan::{MergedChanges, MergedEntries};

/// Default size of a log file, in bytes, at which the store switches to the other file.
pub const FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Factor by which the active file may exceed its size while a flush is running; beyond it, writes block.
const FILE_OVERSIZE_FACTOR: u64 = 4;

/// Opens the store whose B-trees are in the file `path`, or creates an empty one; the folder must exist.
///
/// The log is in two files beside it, of about `file_bytes` each. `cache_bytes` is the page cache of the trees.
///
/// # Errors
/// [`Error::AlreadyOpen`] if this or another process has the store open, [`Error::LogGap`] if the log lacks
/// acknowledged records.
pub fn open(path: impl AsRef<Path>, file_bytes: u64, cache_bytes: usize) -> Result<WalStore> {
    let path = path.as_ref();
    let trees = trees::open_with_wal(path, cache_bytes)?;
    let failed = |file: PathBuf| move |source: io::Error| Error::Open { path: file, source: source.into() };
    let is_new = !trees.has_wal()?;
    let medium = |number| {
        let file = file_path(path, number);
        open_medium(&file, is_new).map_err(failed(file))
    };
    let media = [medium(0)?, medium(1)?];
    if is_new {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder.to_owned()))?;
        // From here on, opening the store without its log files fails.
        trees.attach_wal()?;
    }
    WalStore::open(trees, media, file_bytes, FlushMode::Background)
}

/// Returns the path of log file `number` of the store at `path`.
fn file_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".wal{number}"));
    PathBuf::from(name)
}

/// Opens a log file.
fn open_medium(path: &Path, may_create: bool) -> io::Result<LogMedium> {
    let file = OpenOptions::new().read(true).write(true).create(may_create).truncate(false).open(path)?;
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}

/// The thread that flushes frozen memtables to the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushMode {
    /// A background thread.
    Background,
    /// The writing thread, so that tests are deterministic.
    #[cfg(test)]
    Inline,
}

/// B-trees with a write-ahead log in front of them.
#[derive(Debug)]
pub struct WalStore {
    shared: Arc<SharedState>,
    /// The log; its lock serializes writers.
    wal: Mutex<Wal>,
    /// Size at which the active log file is switched, in bytes.
    file_bytes: u64,
    /// The background flush thread; `None` where writers flush.
    flusher: Option<JoinHandle<()>>,
}

/// State that the store shares with its flush thread.
#[derive(Debug)]
struct SharedState {
    trees: trees::RedbStore,
    memtables: Mutex<Memtables>,
    /// Notified when a memtable is frozen or flushed, and when the store closes or is poisoned.
    state_changed: Condvar,
    poisoned: AtomicBool,
}

/// The memtables over the trees, newest first.
#[derive(Debug, Default)]
struct Memtables {
    active: Memtable,
    frozen: Option<FrozenMemtable>,
    is_closing: bool,
}

/// Immutable memtable of the inactive log file, being flushed to the trees.
#[derive(Debug, Clone)]
struct FrozenMemtable {
    changes: Arc<Memtable>,
    /// Number of its newest record.
    last_record: u64,
}

impl WalStore {
    fn open(trees: trees::RedbStore, media: [LogMedium; 2], file_bytes: u64, flush: FlushMode) -> Result<Self> {
        let position = trees.wal_position()?;
        let (wal, RecoveredRecords { inactive: waiting, active }) =
            Wal::open(media, position.store_identity, position.last_applied).map_err(|error| {
                let path = trees.path().to_owned();
                match error {
                    RecoveryError::Io(source) => Error::Open { path, source: source.into() },
                    RecoveryError::Gap { after, found } => Error::LogGap { path, after, found },
                }
            })?;
        let through = waiting.last().map(|record| record.number);
        let changes = Arc::new(Memtable::from_records(waiting));
        let frozen = through.map(|through| FrozenMemtable { changes, last_record: through });
        let memtables = Memtables { active: Memtable::from_records(active), frozen: frozen.clone(), is_closing: false };
        let shared = Arc::new(SharedState {
            trees,
            memtables: Mutex::new(memtables),
            state_changed: Condvar::new(),
            poisoned: AtomicBool::new(false),
        });
        let flusher = match flush {
            FlushMode::Background => {
                let flushing = Arc::clone(&shared);
                let thread = std::thread::Builder::new().name("kv-flush".to_owned());
                let failed =
                    |source: io::Error| Error::Open { path: shared.trees.path().to_owned(), source: source.into() };
                Some(thread.spawn(move || flushing.run_flusher()).map_err(failed)?)
            }
            #[cfg(test)]
            FlushMode::Inline => {
                frozen.iter().try_for_each(|frozen| shared.flush(frozen))?;
                None
            }
        };
        Ok(Self { shared, wal: Mutex::new(wal), file_bytes, flusher })
    }

    /// Switches log files and freezes the active memtable if the active file is full; blocks while the file is far over
    /// its size and the previous flush has not finished.
    fn rotate(&self, wal: &mut Wal) -> Result<()> {
        if wal.active_bytes() < self.file_bytes {
            return Ok(());
        }
        let mut memtables = self.shared.memtables.lock();
        while memtables.frozen.is_some()
            && self.file_bytes.saturating_mul(FILE_OVERSIZE_FACTOR) <= wal.active_bytes()
            && !self.is_poisoned()
        {
            self.shared.state_changed.wait(&mut memtables);
        }
        if memtables.frozen.is_some() {
            return Ok(());
        }
        let through = wal.switch_files(self.file_bytes).map_err(|source| self.shared.poison(source.into()))?;
        let changes = Arc::new(std::mem::take(&mut memtables.active));
        let frozen = FrozenMemtable { changes, last_record: through };
        memtables.frozen = Some(frozen.clone());
        drop(memtables);
        self.shared.state_changed.notify_all();
        if self.flusher.is_none() { self.shared.flush(&frozen) } else { Ok(()) }
    }
}

impl SharedState {
    fn check_usable(&self) -> Result<()> {
        if self.is_poisoned() { Err(Error::Poisoned { path: self.trees.path().to_owned() }) } else { Ok(()) }
    }

    fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    fn poison(&self, source: Source) -> Error {
        let path = self.trees.path().to_owned();
        tracing::error!(path = %path.display(), error = %source, "a write to the store file failed; later calls fail until restart");
        self.poisoned.store(true, Ordering::Release);
        self.state_changed.notify_all();
        Error::Write { path, source }
    }

    /// Flushes each frozen memtable until the store closes or a flush fails: body of the flush thread.
    fn run_flusher(&self) {
        loop {
            let mut memtables = self.memtables.lock();
            while memtables.frozen.is_none() && !memtables.is_closing {
                self.state_changed.wait(&mut memtables);
            }
            let frozen = memtables.frozen.clone().filter(|_| !memtables.is_closing);
            drop(memtables);
            // On close nothing is flushed: the log still has what the trees lack. A flush failure poisons the store, so
            // the next write reports it.
            let Some(frozen) = frozen else { return };
            if self.flush(&frozen).is_err() {
                return;
            }
        }
    }

    /// Writes a frozen memtable to the trees and drops it.
    fn flush(&self, frozen: &FrozenMemtable) -> Result<()> {
        if let Err(source) = self.trees.apply(&frozen.changes, frozen.last_record) {
            // Under the lock that a writer holds from its look at the flag until it waits: none misses the wake-up.
            let _layers = self.memtables.lock();
            return Err(self.poison(source));
        }
        self.memtables.lock().frozen = None;
        self.state_changed.notify_all();
        Ok(())
    }
}

impl Memtables {
    /// Returns the newest change of `key`: a value, or `Some(None)` for a deletion; `None` if no memtable has one.
    fn get(&self, space: Space, key: &[u8]) -> Option<Option<Bytes>> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.changes.get(space, key));
        self.active.get(space, key).or_else(frozen)
    }

    /// Iterates over a snapshot of the newest changes in `range`.
    fn range(&self, space: Space, range: &KeyRange, direction: Direction) -> MergedChanges {
        let frozen = self.frozen.as_ref().map(|frozen| frozen.changes.range(space, range, direction));
        MergedChanges::new(self.active.range(space, range, direction), frozen, direction)
    }
}

impl TxKv for WalStore {
    fn write(&self, batch: Batch) -> Result<()> {
        batch.check_sizes()?;
        if !record_frame::fits_in_frame(&batch) {
            return Err(Error::BatchTooLong { bytes: batch.encoded_bytes_max() });
        }
        let mut wal = self.wal.lock();
        self.shared.check_usable()?;
        if batch.is_empty() {
            return Ok(());
        }
        let appended = Failpoint::StoreWrite.check().and_then(|()| wal.append(&batch));
        appended.map_err(|source| self.shared.poison(source.into()))?;
        Failpoint::StoreWritten.pass();
        self.shared.memtables.lock().active.apply(batch);
        self.rotate(&mut wal)
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.multi_get(space, &[key])?.pop().expect("multi_get returns one result per key"))
    }

    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.shared.check_usable()?;
        let memtables = self.shared.memtables.lock();
        let changed: Vec<Option<Option<Bytes>>> = keys.iter().map(|key| memtables.get(space, key)).collect();
        let below = self.shared.trees.snapshot()?;
        drop(memtables);
        let value = |(key, changed): (&&[u8], Option<Option<Bytes>>)| match changed {
            Some(value) => Ok(value),
            None => below.get(space, key),
        };
        keys.iter().zip(changed).map(value).collect()
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries> {
        self.shared.check_usable()?;
        if range.is_empty() {
            return Ok(Box::new(std::iter::empty()));
        }
        let memtables = self.shared.memtables.lock();
        let changes = memtables.range(space, &range, direction);
        let below = self.shared.trees.snapshot()?;
        drop(memtables);
        Ok(Box::new(MergedEntries::new(below.scan(space, &range, direction)?, changes)))
    }

    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        for entry in self.scan(space, KeyRange::prefix(prefix), Direction::Forward)? {
            batch.delete(space, entry?.0);
        }
        self.write(batch)
    }

    fn checkpoint(&self, path: &Path) -> Result<()> {
        self.shared.check_usable()?;
        let memtables = self.shared.memtables.lock();
        let changes = Space::ALL.map(|space| (space, memtables.range(space, &KeyRange::all(), Direction::Forward)));
        let below = self.shared.trees.snapshot()?;
        drop(memtables);
        trees::create_checkpoint(path, |copy| {
            for (space, changes) in changes {
                let mut target = copy.open_table(trees::space_table(space))?;
                let below = below.scan(space, &KeyRange::all(), Direction::Forward)?;
                for entry in MergedEntries::new(below, changes) {
                    let (key, value) = entry?;
                    trees::insert_checked(&mut target, space, &key, &value)?;
                }
            }
            Ok(())
        })
    }

    fn is_poisoned(&self) -> bool {
        self.shared.is_poisoned()
    }
}

impl Drop for WalStore {
    fn drop(&mut self) {
        self.shared.memtables.lock().is_closing = true;
        self.shared.state_changed.notify_all();
        if let Some(flusher) = self.flusher.take() {
            // A failed flush has already been logged.
            drop(flusher.join());
        }
    }
}
