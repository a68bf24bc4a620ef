//! Makes a store file with its tables, whole or not at all.

use std::fs::{self, File};
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError, TableHandle, WriteTransaction};
use types::Failpoint;

use super::{CACHE_BYTES, beside, builder, commit, table};
use crate::error::Source;
use crate::{Error, Result, Space};

/// The version of the file's layout; a file with a higher one is refused.
///
/// | format | file |
/// |---|---|
/// | 1 | values without checksums |
/// | 2 | the same, not whole without its log |
/// | 3 | values with checksums |
/// | 4 | the same, not whole without its log |
pub(super) const FORMAT: u64 = 3;

pub(super) const FORMAT_TABLE: TableDefinition<'static, &'static str, u64> = TableDefinition::new("kiln");

/// Makes a store at `path` that holds what `fill` writes. The file gets its name last: `redb` refuses, for ever, a file
/// whose making was cut short.
pub(crate) fn create(path: &Path, fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<(), Source> {
    let partial = beside(path, "partial");
    if partial.try_exists()? {
        fs::remove_file(&partial)?;
    }
    let made = make(&partial, fill).and_then(|()| {
        Failpoint::StoreMade.pass();
        fs::rename(&partial, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(())
    });
    if made.is_err() {
        // The caller hears about the first failure; what is left is removed by the next attempt.
        let _ = fs::remove_file(&partial);
    }
    made
}

/// [`create`] for a copy of a store, which must not replace anything.
pub(crate) fn checkpoint(path: &Path, fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<()> {
    let failed = |source| Error::Checkpoint { path: path.to_owned(), source };
    if path.try_exists().map_err(|source| failed(source.into()))? {
        return Err(Error::CheckpointExists { path: path.to_owned() });
    }
    create(path, fill).map_err(failed)
}

fn make(path: &Path, fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<(), Source> {
    let database = builder(CACHE_BYTES).create(path)?;
    lay_out(&database, fill)?;
    drop(database);
    File::open(path)?.sync_all()?;
    Ok(())
}

/// Makes the table of every space, then `fill`s them, in one transaction.
pub(super) fn lay_out(
    database: &Database,
    fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>,
) -> Result<(), Source> {
    commit(database, |transaction| {
        for space in Space::ALL {
            transaction.open_table(table(space))?;
        }
        fill(transaction)?;
        let mut table = transaction.open_table(FORMAT_TABLE)?;
        let found = table.get("format")?.map(|format| format.value());
        table.insert("format", found.unwrap_or(FORMAT))?;
        Ok(())
    })
}

/// Whether `database` has no table yet for some space.
pub(super) fn lacks_tables(database: &Database) -> Result<bool, Source> {
    let snapshot = database.begin_read()?;
    let names: Vec<String> = snapshot.list_tables()?.map(|found| found.name().to_owned()).collect();
    Ok(Space::ALL.iter().any(|space| !names.iter().any(|name| name == space.table_name())))
}

/// The format of the store in `database`; `None` for one without tables.
pub(super) fn read_format(database: &Database) -> Result<Option<u64>, Source> {
    let snapshot = database.begin_read()?;
    let table = match snapshot.open_table(FORMAT_TABLE) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(source) => return Err(source.into()),
    };
    Ok(table.get("format")?.map(|format| format.value()))
}
