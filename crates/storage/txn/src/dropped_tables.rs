//! Records of dropped tables by their former names, for UNDROP.
//!
//! The space `DroppedTables` has one key per drop: the schema (4 bytes), the table's name, the commit (8). The value is the
//! commit's time (8 bytes) and the table's id (4).

use bytes::Bytes;
use catalog::Table;
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::{CommitTs, Oid};

use crate::{Error, Result, Transactions};

/// A committed drop of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastDrop {
    pub table: Oid,
    /// The commit that dropped the table.
    pub commit: CommitTs,
}

impl Transactions {
    /// Finds the latest committed drop of a table of that name; `None` if there is none within the retention or that
    /// table was restored since. Blocks on the store.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn last_drop(&self, schema: Oid, name: &str) -> Result<Option<LastDrop>> {
        let prefix = KeyWriter::new().u32(schema.0).str(name).finish();
        let mut drops = self.core.kv.scan(Space::DroppedTables, KeyRange::prefix(&prefix), Direction::Reverse)?;
        let Some((key, value)) = drops.next().transpose()? else { return Ok(None) };
        let damaged = |_| Error::Damaged { what: "list of dropped tables" };
        let mut reader = KeyReader::new(key.get(prefix.len()..).unwrap_or_default());
        let commit = CommitTs(reader.u64().map_err(damaged)?);
        let mut reader = KeyReader::new(&value);
        reader.i64().map_err(damaged)?;
        let table = Oid(reader.u32().map_err(damaged)?);
        // The table may have been restored by UNDROP.
        let is_there = self.current().state.table(table).is_some();
        Ok((!is_there).then_some(LastDrop { table, commit }))
    }
}

/// Adds the record of a dropped table to the batch.
pub(crate) fn put_drop(batch: &mut Batch, table: &Table, commit: CommitTs, now_us: i64) {
    let key = KeyWriter::new().u32(table.schema.0).str(&table.name).u64(commit.0).finish();
    batch.put(Space::DroppedTables, key, KeyWriter::new().i64(now_us).u32(table.oid.0).finish());
}

/// Returns the keys of records from before the cutoff, whose tables can no longer be restored.
pub(crate) fn list_before(kv: &dyn TxKv, cutoff_us: i64) -> Result<Vec<Bytes>> {
    let mut old = Vec::new();
    for entry in kv.scan(Space::DroppedTables, KeyRange::all(), Direction::Forward)? {
        let (key, value) = entry?;
        let at_us = KeyReader::new(&value).i64().map_err(|_| Error::Damaged { what: "list of dropped tables" })?;
        if at_us <= cutoff_us {
            old.push(key);
        }
    }
    Ok(old)
}
