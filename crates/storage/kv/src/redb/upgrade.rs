//! Upgrade of files from before values had checksums.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use types::Failpoint;

use super::create::{FORMAT, FORMAT_TABLE};
use super::with_wal::{FORMAT_WITH_WAL, FORMAT_WITH_WAL_UNCHECKED};
use super::{SpaceTable, commit, insert_checked, space_table};
use crate::Space;
use crate::error::Source;

/// Upgrades the file to the current format by rewriting its values with checksums.
///
/// Each space is one transaction that also sets the format: an interrupted upgrade continues at the next start, and
/// versions that cannot read the new tables refuse the file.
pub(super) fn upgrade(path: &Path, database: &Database) -> Result<(), Source> {
    let names: Vec<String> = database.begin_read()?.list_tables()?.map(|found| found.name().to_owned()).collect();
    let old: Vec<Space> =
        Space::ALL.into_iter().filter(|space| names.iter().any(|name| name == space.unchecked_table_name())).collect();
    if old.is_empty() {
        return Ok(());
    }
    tracing::info!(path = %path.display(), "upgrading the store file: adding checksums to its values");
    for space in old {
        let unchecked: SpaceTable = TableDefinition::new(space.unchecked_table_name());
        commit(database, |transaction| {
            {
                let mut target = transaction.open_table(space_table(space))?;
                let source = transaction.open_table(unchecked)?;
                for entry in source.range::<&[u8]>(..)? {
                    let (key, value) = entry?;
                    insert_checked(&mut target, space, key.value(), value.value())?;
                }
            }
            transaction.delete_table(unchecked)?;
            let mut format = transaction.open_table(FORMAT_TABLE)?;
            let found = format.get("format")?.map(|format| format.value());
            let is_behind_log = matches!(found, Some(FORMAT_WITH_WAL_UNCHECKED | FORMAT_WITH_WAL));
            format.insert("format", if is_behind_log { FORMAT_WITH_WAL } else { FORMAT })?;
            Ok(())
        })?;
        Failpoint::StoreUpgraded.pass();
    }
    Ok(())
}
