//! Reads from a snapshot of the trees.

use std::path::PathBuf;

use bytes::Bytes;
use redb::{AccessGuard, ReadTransaction, ReadableDatabase};

use super::checked::{self, guarded};
use super::{Store, table};
use crate::error::Source;
use crate::{Direction, Entries, Entry, Error, KeyRange, Result, Space};

type Guard = AccessGuard<'static, &'static [u8]>;

/// A read-only snapshot of the trees.
pub(crate) struct Moment {
    path: PathBuf,
    pub(super) snapshot: ReadTransaction,
}

impl Moment {
    /// Returns the value of `key` after verifying its checksum.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let read = || {
            let stored = self.snapshot.open_table(table(space))?.get(key)?;
            Ok(stored.map(|stored| checked::read(space, key, stored.value())))
        };
        match guarded(read).map_err(|source| self.failed(space, source))? {
            Some(None) => Err(Error::DamagedEntry { path: self.path.clone(), space }),
            read => Ok(read.flatten()),
        }
    }

    /// Returns the entries of `range`, which must not be empty.
    pub(crate) fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Entries> {
        let read = || Ok(self.snapshot.open_table(table(space))?.range::<&[u8]>(range.bounds())?);
        let entries = guarded(read).map_err(|source| self.failed(space, source))?;
        let path = self.path.clone();
        Ok(match direction {
            Direction::Forward => Box::new(Checked { path, space, entries, has_failed: false }),
            Direction::Reverse => Box::new(Checked { path, space, entries: entries.rev(), has_failed: false }),
        })
    }

    fn failed(&self, space: Space, source: Source) -> Error {
        Error::Read { path: self.path.clone(), space, source }
    }
}

/// Iterator that verifies the checksum of each entry; it ends after the first failure.
struct Checked<I> {
    path: PathBuf,
    space: Space,
    entries: I,
    has_failed: bool,
}

impl<I: Iterator<Item = Result<(Guard, Guard), redb::StorageError>>> Iterator for Checked<I> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let space = self.space;
        let next = guarded(|| {
            let Some(entry) = self.entries.next() else { return Ok(None) };
            let (key, stored) = entry?;
            let value = checked::read(space, key.value(), stored.value());
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

impl Store {
    /// Takes a snapshot of the trees.
    pub(crate) fn moment(&self) -> Result<Moment> {
        let failed = |source| Error::ReadAny { path: self.path.clone(), source };
        let snapshot = self.database.begin_read().map_err(|source| failed(source.into()))?;
        Ok(Moment { path: self.path.clone(), snapshot })
    }
}
