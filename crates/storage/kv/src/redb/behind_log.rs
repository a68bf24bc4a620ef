//! A store's trees behind its [log](crate::wal): which records they have, and how they get more.

use std::path::Path;

use redb::ReadableDatabase;
use types::random::SystemRandom;
use types::{Failpoint, Random};

use super::create::{FORMAT, FORMAT_TABLE};
use super::{Role, Store, commit, insert, open_file, table};
use crate::error::Source;
use crate::wal::Memtable;
use crate::{Error, Result};

/// The version of a file that is not whole without its log.
pub(super) const FORMAT_BEHIND_LOG: u64 = FORMAT + 1;
/// The same before values had checksums.
pub(super) const FORMAT_BEHIND_LOG_UNCHECKED: u64 = 2;

/// How the trees stand to their log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogMark {
    /// What the records of their log carry.
    pub(crate) identity: u64,
    /// They have all records up to this one.
    pub(crate) applied: u64,
}

/// Opens the file at `path`, or makes it, for a store with a log; `cache_bytes` is memory for its pages.
pub(crate) fn open_behind_log(path: &Path, cache_bytes: usize) -> Result<Store> {
    open_file(path, Role::BehindLog, cache_bytes)
}

#[cfg(test)]
pub(crate) fn open_behind_log_on(backend: impl redb::StorageBackend) -> Result<Store> {
    let store = super::open_on(backend, Role::BehindLog)?;
    if !store.has_log()? {
        store.begin_log()?;
    }
    Ok(store)
}

impl Store {
    /// Whether its log has begun: else the file is whole in itself.
    pub(crate) fn has_log(&self) -> Result<bool> {
        let failed = |source| Error::Open { path: self.path.clone(), source };
        Ok(self.read_log_mark().map_err(failed)?.is_some())
    }

    /// Begins a log that nothing else belongs to.
    pub(crate) fn begin_log(&self) -> Result<()> {
        let failed = |source| Error::Open { path: self.path.clone(), source };
        commit(&self.database, |transaction| {
            let mut table = transaction.open_table(FORMAT_TABLE)?;
            table.insert("format", FORMAT_BEHIND_LOG)?;
            table.insert("log", SystemRandom.next_u64())?;
            table.insert("applied", 0)?;
            Ok(())
        })
        .map_err(failed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn log_mark(&self) -> Result<LogMark> {
        let failed = |source| Error::Open { path: self.path.clone(), source };
        self.read_log_mark().map_err(failed)?.ok_or_else(|| failed("it has no log".into()))
    }

    fn read_log_mark(&self) -> Result<Option<LogMark>, Source> {
        let table = self.database.begin_read()?.open_table(FORMAT_TABLE)?;
        let (identity, applied) = (table.get("log")?, table.get("applied")?);
        Ok(identity
            .zip(applied)
            .map(|(identity, applied)| LogMark { identity: identity.value(), applied: applied.value() }))
    }

    /// Takes the changes of all records up to `through`, durably.
    pub(crate) fn apply(&self, changes: &Memtable, through: u64) -> Result<(), Source> {
        commit(&self.database, |transaction| {
            for (space, keys) in changes.spaces() {
                let mut table = transaction.open_table(table(space))?;
                for (key, value) in keys {
                    match value {
                        Some(value) => insert(&mut table, space, key, value)?,
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
