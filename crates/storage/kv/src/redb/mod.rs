//! Backend in one file: `redb`'s copy-on-write B-trees, one table per key space.
//!
//! In reading order:
//! - `create.rs`: creating a file, checkpoints, format versions
//! - `checksum.rs`: value checksums and detection of damaged pages
//! - `snapshot.rs`: reads from a snapshot
//! - `with_wal.rs`: the trees of a store with a write-ahead log
//! - `upgrade.rs`: upgrade of files without checksums

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use redb::{Database, TableDefinition, WriteTransaction};

use crate::error::Source;
use crate::{Batch, Direction, Entries, Error, KeyRange, Op, Result, Space, TxKv};

mod checksum;
mod create;
mod snapshot;
#[cfg(test)]
mod tests;
mod upgrade;
mod with_wal;

pub(crate) use checksum::{DamagedPage, insert_checked};
pub(crate) use create::create_checkpoint;
use create::create_store;
pub(crate) use with_wal::open_with_wal;
#[cfg(test)]
pub(crate) use with_wal::open_with_wal_on;

/// Definition of the table that holds the entries of one space.
pub(crate) type SpaceTable = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// Default size of the page cache, in bytes. The catalog of a warehouse with 100,000 shards fits.
pub const CACHE_BYTES: usize = 256 * 1024 * 1024;

/// Opens the standalone store at `path`, or creates an empty one; the folder must exist.
///
/// Each write is durable in the file itself, which suits copies and files that are written once. Fails for a server's
/// store, which has a [write-ahead log](crate::wal), and with [`Error::AlreadyOpen`] while any process has it open.
pub fn open(path: impl AsRef<Path>) -> Result<RedbStore> {
    open_file(path.as_ref(), FileRole::Standalone, CACHE_BYTES)
}

/// The use of a file: alone, or as the trees behind a write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileRole {
    /// The file contains the entire store.
    Standalone,
    /// Newer batches are in a write-ahead log beside the file.
    WithWal,
}

impl FileRole {
    /// Returns the highest file format that can be opened in this role.
    fn format_max(self) -> u64 {
        match self {
            Self::Standalone => create::FORMAT,
            Self::WithWal => with_wal::FORMAT_WITH_WAL,
        }
    }

    /// Whether a file of `format` can be opened in this role.
    fn can_open(self, format: u64) -> bool {
        format <= self.format_max() && (self == Self::WithWal || format != with_wal::FORMAT_WITH_WAL_UNCHECKED)
    }
}

fn open_file(path: &Path, role: FileRole, cache_bytes: usize) -> Result<RedbStore> {
    let lock = lock(path)?;
    let failed = |source: Source| Error::Open { path: path.to_owned(), source };
    if !path.try_exists().map_err(|source| failed(source.into()))? {
        create_store(path, |_| Ok(())).map_err(failed)?;
    }
    let opened = checksum::catch_damage(|| match database_builder(cache_bytes).open(path) {
        Err(redb::DatabaseError::DatabaseAlreadyOpen) => Ok(None),
        opened => Ok(Some(opened?)),
    });
    let mut database = opened.map_err(failed)?.ok_or_else(|| Error::AlreadyOpen { path: path.to_owned() })?;
    check_format(path, &database, role)?;
    // A server verifies all pages at its start: this detects a copy taken of a file in use and a disk that lost writes.
    if role == FileRole::WithWal && !checksum::catch_damage(|| Ok(database.check_integrity()?)).map_err(failed)? {
        tracing::warn!(path = %path.display(), "the store file was not closed cleanly; its list of free pages was recomputed");
    }
    RedbStore::new(path, database, Some(lock), role)
}

/// Checks that the file's format can be opened in `role`.
fn check_format(path: &Path, database: &Database, role: FileRole) -> Result<()> {
    let failed = |source| Error::Open { path: path.to_owned(), source };
    match checksum::catch_damage(|| create::read_format(database)).map_err(failed)? {
        Some(found) if !role.can_open(found) => {
            Err(Error::UnsupportedFormat { path: path.to_owned(), found, supported: role.format_max() })
        }
        _ => Ok(()),
    }
}

/// Opens the store on a test backend that can inject failures.
#[cfg(test)]
fn open_on_backend(backend: impl redb::StorageBackend, role: FileRole) -> Result<RedbStore> {
    let path = Path::new("(test backend)");
    let database = database_builder(CACHE_BYTES)
        .create_with_backend(backend)
        .map_err(|source| Error::Open { path: path.to_owned(), source: source.into() })?;
    RedbStore::new(path, database, None, role)
}

/// A store in one `redb` file.
#[derive(Debug)]
pub struct RedbStore {
    path: PathBuf,
    database: Database,
    /// Serializes writers, so that none starts between another's failure and the poisoning.
    writer: Mutex<()>,
    poisoned: AtomicBool,
    /// Lock file. Declared last so that it is released after `database`, whose drop still writes.
    _lock: Option<File>,
}

impl RedbStore {
    fn new(path: &Path, database: Database, lock: Option<File>, role: FileRole) -> Result<Self> {
        let store = Self {
            path: path.to_owned(),
            database,
            writer: Mutex::new(()),
            poisoned: AtomicBool::new(false),
            _lock: lock,
        };
        let failed = |source| Error::Open { path: path.to_owned(), source };
        check_format(path, &store.database, role)?;
        checksum::catch_damage(|| upgrade::upgrade(path, &store.database)).map_err(failed)?;
        // Files of older versions have fewer spaces, and test backends start without any.
        if create::lacks_tables(&store.database).map_err(failed)? {
            create::create_tables(&store.database, |_| Ok(())).map_err(failed)?;
        }
        Ok(store)
    }

    fn check_usable(&self) -> Result<()> {
        if self.is_poisoned() { Err(Error::Poisoned { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Runs `change` in one durable transaction; any failure poisons the handle.
    fn commit_changes(&self, change: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<()> {
        let _writer = self.writer.lock();
        self.check_usable()?;
        commit(&self.database, change).map_err(|source| {
            self.poisoned.store(true, Ordering::Release);
            tracing::error!(path = %self.path.display(), error = %source, "a write to the store file failed; later calls fail until restart");
            Error::Write { path: self.path.clone(), source }
        })
    }
}

impl TxKv for RedbStore {
    fn write(&self, batch: Batch) -> Result<()> {
        batch.check_sizes()?;
        if batch.is_empty() {
            return self.check_usable();
        }
        self.commit_changes(|transaction| {
            for ops in batch.sorted_by_space().chunk_by(|left, right| left.space() == right.space()) {
                let mut table = transaction.open_table(space_table(ops[0].space()))?;
                for op in ops {
                    match op {
                        Op::Put { space, key, value } => insert_checked(&mut table, *space, key, value)?,
                        Op::Delete { key, .. } => drop(table.remove(&key[..])?),
                    }
                }
            }
            Ok(())
        })
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        self.check_usable()?;
        self.snapshot()?.get(space, key)
    }

    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.check_usable()?;
        let moment = self.snapshot()?;
        keys.iter().map(|key| moment.get(space, key)).collect()
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries> {
        self.check_usable()?;
        if range.is_empty() {
            return Ok(Box::new(std::iter::empty()));
        }
        self.snapshot()?.scan(space, &range, direction)
    }

    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()> {
        let range = KeyRange::prefix(prefix);
        self.commit_changes(|transaction| {
            let mut table = transaction.open_table(space_table(space))?;
            table.retain_in::<&[u8], _>(range.bounds(), |_, _| false)?;
            Ok(())
        })
    }

    fn checkpoint(&self, path: &Path) -> Result<()> {
        self.check_usable()?;
        let moment = self.snapshot()?;
        create_checkpoint(path, |copy| {
            for space in Space::ALL {
                let mut target = copy.open_table(space_table(space))?;
                for entry in moment.scan(space, &KeyRange::all(), Direction::Forward)? {
                    let (key, value) = entry?;
                    insert_checked(&mut target, space, &key, &value)?;
                }
            }
            Ok(())
        })
    }

    fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }
}

/// Locks the lock file beside `path`, so that two processes cannot create the same store at the same time.
fn lock(path: &Path) -> Result<File> {
    let failed = |source: io::Error| Error::Open { path: path.to_owned(), source: source.into() };
    let lock_path = path_with_extension(path, "lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(lock_path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::AlreadyOpen { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Returns `path` with `.extension` appended.
fn path_with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

fn database_builder(cache_bytes: usize) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache_bytes);
    builder
}

/// Returns the definition of the table of `space`.
pub(crate) fn space_table(space: Space) -> SpaceTable {
    TableDefinition::new(space.table_name())
}

/// Runs `change` in one durable transaction.
fn commit(database: &Database, change: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<(), Source> {
    let mut transaction = database.begin_write()?;
    // Saves the allocator's state with each commit, so that opening after a crash need not scan the whole file.
    transaction.set_quick_repair(true);
    change(&transaction)?;
    transaction.commit()?;
    Ok(())
}
