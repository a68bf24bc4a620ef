//! Reads from a snapshot of the trees.

use std::path::PathBuf;

use bytes::Bytes;
use redb::{AccessGuard, ReadTransaction, ReadableDatabase};

use super::checksum::{self, catch_damage};
use super::{RedbStore, space_table};
use crate::error::Source;
use crate::{Direction, Entries, Entry, Error, KeyRange, Result, Space};

type EntryGuard = AccessGuard<'static, &'static [u8]>;

/// A read-only snapshot of the trees.
pub(crate) struct TreeSnapshot {
    path: PathBuf,
    pub(super) transaction: ReadTransaction,
}

impl TreeSnapshot {
    /// Returns the value of `key` after verifying its checksum.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let read = || {
            let stored = self.transaction.open_table(space_table(space))?.get(key)?;
            Ok(stored.map(|stored| checksum::verify(space, key, stored.value())))
        };
        match catch_damage(read).map_err(|source| self.failed(space, source))? {
            Some(None) => Err(Error::DamagedEntry { path: self.path.clone(), space }),
            read => Ok(read.flatten()),
        }
    }

    /// Returns the entries of `range`, which must not be empty.
    pub(crate) fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Entries> {
        let read = || Ok(self.transaction.open_table(space_table(space))?.range::<&[u8]>(range.bounds())?);
        let entries = catch_damage(read).map_err(|source| self.failed(space, source))?;
        let path = self.path.clone();
        Ok(match direction {
            Direction::Forward => Box::new(VerifiedEntries { path, space, entries, has_failed: false }),
            Direction::Reverse => Box::new(VerifiedEntries { path, space, entries: entries.rev(), has_failed: false }),
        })
    }

    fn failed(&self, space: Space, source: Source) -> Error {
        Error::Read { path: self.path.clone(), space, source }
    }
}

/// Iterator that verifies the checksum of each entry; it ends after the first failure.
struct VerifiedEntries<I> {
    path: PathBuf,
    space: Space,
    entries: I,
    has_failed: bool,
}

impl<I: Iterator<Item = Result<(EntryGuard, EntryGuard), redb::StorageError>>> Iterator for VerifiedEntries<I> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let space = self.space;
        let next = catch_damage(|| {
            let Some(entry) = self.entries.next() else { return Ok(None) };
            let (key, stored) = entry?;
            let value = checksum::verify(space, key.value(), stored.value());
            Ok(Some(value.map(|value| (Bytes::copy_from_slice(key.value()), value))))
        });
        let next = match next {
            Ok(None) => return None,
            Ok(Some(Some(entry))) => return Some(Ok(entry)),
            Ok(Some(None)) => Error::DamagedEntry { path: self.path.clone(), space },
            Err(source) => Error::Read { path: self.path.clone(), space, source },
        };
        self.has_failed = true;
        Some(Err(next))
    }
}

impl RedbStore {
    /// Takes a snapshot of the trees.
    pub(crate) fn snapshot(&self) -> Result<TreeSnapshot> {
        let failed = |source| Error::BeginRead { path: self.path.clone(), source };
        let snapshot = self.database.begin_read().map_err(|source| failed(source.into()))?;
        Ok(TreeSnapshot { path: self.path.clone(), transaction: snapshot })
    }
}
