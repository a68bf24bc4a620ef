//! Atomic creation of store files with their tables.

use std::fs::{self, File};
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError, TableHandle, WriteTransaction};
use types::Failpoint;

use super::{CACHE_BYTES, commit, database_builder, path_with_extension, space_table};
use crate::error::Source;
use crate::{Error, Result, Space};

/// Format version of standalone files; files of a higher format cannot be opened.
///
/// | format | value checksums | requires its write-ahead log |
/// |---|---|---|
/// | 1 | no | no |
/// | 2 | no | yes |
/// | 3 | yes | no |
/// | 4 | yes | yes |
pub(super) const FORMAT: u64 = 3;

/// Table of the file's metadata: `format`, and `log` and `applied` for a file with a log.
pub(super) const FORMAT_TABLE: TableDefinition<'static, &'static str, u64> = TableDefinition::new("kiln");

/// Creates a store at `path` with the entries that `fill` writes. The file is renamed to `path` last, because `redb`
/// can never open a file whose creation was interrupted.
pub(crate) fn create_store(
    path: &Path,
    fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>,
) -> Result<(), Source> {
    let partial = path_with_extension(path, "partial");
    if partial.try_exists()? {
        fs::remove_file(&partial)?;
    }
    let created = create_file(&partial, fill).and_then(|()| {
        Failpoint::StoreMade.pass();
        fs::rename(&partial, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(())
    });
    if created.is_err() {
        // The first failure is returned; a leftover file is removed by the next attempt.
        let _ = fs::remove_file(&partial);
    }
    created
}

/// Creates a copy of a store at `path` as [`create_store`] does; fails if the file exists.
pub(crate) fn create_checkpoint(path: &Path, fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<()> {
    let failed = |source| Error::Checkpoint { path: path.to_owned(), source };
    if path.try_exists().map_err(|source| failed(source.into()))? {
        return Err(Error::CheckpointExists { path: path.to_owned() });
    }
    create_store(path, fill).map_err(failed)
}

fn create_file(path: &Path, fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>) -> Result<(), Source> {
    let database = database_builder(CACHE_BYTES).create(path)?;
    create_tables(&database, fill)?;
    drop(database);
    File::open(path)?.sync_all()?;
    Ok(())
}

/// Creates the tables of all spaces, runs `fill` and sets the format if there is none, in one transaction.
pub(super) fn create_tables(
    database: &Database,
    fill: impl FnOnce(&WriteTransaction) -> Result<(), Source>,
) -> Result<(), Source> {
    commit(database, |transaction| {
        for space in Space::ALL {
            transaction.open_table(space_table(space))?;
        }
        fill(transaction)?;
        let mut table = transaction.open_table(FORMAT_TABLE)?;
        let found = table.get("format")?.map(|format| format.value());
        table.insert("format", found.unwrap_or(FORMAT))?;
        Ok(())
    })
}

/// Whether `database` lacks the table of some space.
pub(super) fn lacks_tables(database: &Database) -> Result<bool, Source> {
    let snapshot = database.begin_read()?;
    let names: Vec<String> = snapshot.list_tables()?.map(|found| found.name().to_owned()).collect();
    Ok(Space::ALL.iter().any(|space| !names.iter().any(|name| name == space.table_name())))
}

/// Reads the file format of `database`; `None` if it has no tables yet.
pub(super) fn read_format(database: &Database) -> Result<Option<u64>, Source> {
    let snapshot = database.begin_read()?;
    let table = match snapshot.open_table(FORMAT_TABLE) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(source) => return Err(source.into()),
    };
    Ok(table.get("format")?.map(|format| format.value()))
}
