//! The trees of a store with a [write-ahead log](crate::wal): applying records and tracking which ones they have.

use std::path::Path;

use redb::ReadableDatabase;
use types::random::SystemRandom;
use types::{Failpoint, Random};

use super::create::{FORMAT, FORMAT_TABLE};
use super::{FileRole, RedbStore, commit, insert_checked, open_file, space_table};
use crate::error::Source;
use crate::wal::Memtable;
use crate::{Error, Result};

/// File format of trees that are incomplete without their log.
pub(super) const FORMAT_WITH_WAL: u64 = FORMAT + 1;
/// The same without value checksums.
pub(super) const FORMAT_WITH_WAL_UNCHECKED: u64 = 2;

/// The log that the trees belong to, and the last record applied from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalPosition {
    /// Random identity of the store, which each frame of its log contains.
    pub(crate) store_identity: u64,
    /// Number of the last record in the trees; all before it are in the trees too.
    pub(crate) last_applied: u64,
}

/// Opens or creates the trees at `path` for a store with a log; `cache_bytes` is their page cache.
pub(crate) fn open_with_wal(path: &Path, cache_bytes: usize) -> Result<RedbStore> {
    open_file(path, FileRole::WithWal, cache_bytes)
}

#[cfg(test)]
pub(crate) fn open_with_wal_on(backend: impl redb::StorageBackend) -> Result<RedbStore> {
    let store = super::open_on_backend(backend, FileRole::WithWal)?;
    if !store.has_wal()? {
        store.attach_wal()?;
    }
    Ok(store)
}

impl RedbStore {
    /// Whether the file has a log. Without one it contains the entire store.
    pub(crate) fn has_wal(&self) -> Result<bool> {
        let failed = |source| Error::Open { path: self.path.clone(), source };
        Ok(self.read_wal_position().map_err(failed)?.is_some())
    }

    /// Marks the file as having a log, with a new random identity.
    pub(crate) fn attach_wal(&self) -> Result<()> {
        let failed = |source| Error::Open { path: self.path.clone(), source };
        commit(&self.database, |transaction| {
            let mut table = transaction.open_table(FORMAT_TABLE)?;
            table.insert("format", FORMAT_WITH_WAL)?;
            table.insert("log", SystemRandom.next_u64())?;
            table.insert("applied", 0)?;
            Ok(())
        })
        .map_err(failed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the log's identity and the last applied record; fails if the file has no log.
    pub(crate) fn wal_position(&self) -> Result<WalPosition> {
        let failed = |source| Error::Open { path: self.path.clone(), source };
        self.read_wal_position().map_err(failed)?.ok_or_else(|| failed("the store file has no write-ahead log".into()))
    }

    fn read_wal_position(&self) -> Result<Option<WalPosition>, Source> {
        let table = self.database.begin_read()?.open_table(FORMAT_TABLE)?;
        let (identity, applied) = (table.get("log")?, table.get("applied")?);
        Ok(identity
            .zip(applied)
            .map(|(identity, applied)| WalPosition { store_identity: identity.value(), last_applied: applied.value() }))
    }

    /// Applies `changes`, those of all records up to `through`, in one durable transaction.
    pub(crate) fn apply(&self, changes: &Memtable, through: u64) -> Result<(), Source> {
        commit(&self.database, |transaction| {
            for (space, keys) in changes.spaces() {
                let mut table = transaction.open_table(space_table(space))?;
                for (key, value) in keys {
                    match value {
                        Some(value) => insert_checked(&mut table, space, key, value)?,
                        None => drop(table.remove(&key[..])?),
                    }
                }
            }
            transaction.open_table(FORMAT_TABLE)?.insert("applied", through)?;
            Ok(Failpoint::StoreFlush.check()?)
        })?;
        Failpoint::StoreFlushed.pass();
        Ok(())
    }
}
