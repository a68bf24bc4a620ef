//! What the trees held at one moment.

use std::path::PathBuf;

use bytes::Bytes;
use redb::{AccessGuard, ReadTransaction, ReadableDatabase};

use super::{Store, table};
use crate::error::Source;
use crate::{Direction, Entries, Error, KeyRange, Result, Space};

type Guard = AccessGuard<'static, &'static [u8]>;

/// The trees as they were at one moment.
pub(crate) struct Moment {
    path: PathBuf,
    pub(super) snapshot: ReadTransaction,
}

impl Moment {
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let read = || -> Result<Option<Bytes>, Source> {
            let value = self.snapshot.open_table(table(space))?.get(key)?;
            Ok(value.map(|value| Bytes::copy_from_slice(value.value())))
        };
        read().map_err(|source| self.failed(space, source))
    }

    /// The entries of a range that is not empty.
    pub(crate) fn scan(&self, space: Space, range: &KeyRange, direction: Direction) -> Result<Entries> {
        let read =
            || -> Result<_, Source> { Ok(self.snapshot.open_table(table(space))?.range::<&[u8]>(range.bounds())?) };
        let entries = read().map_err(|source| self.failed(space, source))?;
        let path = self.path.clone();
        let copied = move |entry: Result<(Guard, Guard), redb::StorageError>| {
            let (key, value) =
                entry.map_err(|source| Error::Read { path: path.clone(), space, source: source.into() })?;
            Ok((Bytes::copy_from_slice(key.value()), Bytes::copy_from_slice(value.value())))
        };
        Ok(match direction {
            Direction::Forward => Box::new(entries.map(copied)),
            Direction::Reverse => Box::new(entries.rev().map(copied)),
        })
    }

    fn failed(&self, space: Space, source: Source) -> Error {
        Error::Read { path: self.path.clone(), space, source }
    }
}

impl Store {
    /// The trees as they are now.
    pub(crate) fn moment(&self) -> Result<Moment> {
        let failed = |source| Error::ReadAny { path: self.path.clone(), source };
        let snapshot = self.database.begin_read().map_err(|source| failed(source.into()))?;
        Ok(Moment { path: self.path.clone(), snapshot })
    }
}
