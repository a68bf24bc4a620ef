//! Tables that were dropped, by the names they had: what UNDROP goes by.
//!
//! One key per drop in the space `Dropped`: the schema (4 bytes), the table's name, the commit (8). The value is the commit's time
//! (8 bytes) and the table's id (4).

use bytes::Bytes;
use catalog::Table;
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::{CommitTs, Oid};

use crate::{Error, Result, Transactions};

/// When a table was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastDrop {
    pub table: Oid,
    /// By this commit.
    pub commit: CommitTs,
}

impl Transactions {
    /// The latest committed drop of a table of that name; `None` where there was none within the retention, or that table
    /// is there again. Waits for the store.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn last_drop(&self, schema: Oid, name: &str) -> Result<Option<LastDrop>> {
        let prefix = KeyWriter::new().u32(schema.0).str(name).finish();
        let mut drops = self.core.kv.scan(Space::Dropped, KeyRange::prefix(&prefix), Direction::Reverse)?;
        let Some((key, value)) = drops.next().transpose()? else { return Ok(None) };
        let damaged = |_| Error::Damaged { what: "list of dropped tables" };
        let mut reader = KeyReader::new(key.get(prefix.len()..).unwrap_or_default());
        let commit = CommitTs(reader.u64().map_err(damaged)?);
        let mut reader = KeyReader::new(&value);
        reader.i64().map_err(damaged)?;
        let table = Oid(reader.u32().map_err(damaged)?);
        // It may have come back.
        let is_there = self.current().state.table(table).is_some();
        Ok((!is_there).then_some(LastDrop { table, commit }))
    }
}

/// Records that a commit dropped the table.
pub(crate) fn put(batch: &mut Batch, table: &Table, commit: CommitTs, now_us: i64) {
    let key = KeyWriter::new().u32(table.schema.0).str(&table.name).u64(commit.0).finish();
    batch.put(Space::Dropped, key, KeyWriter::new().i64(now_us).u32(table.oid.0).finish());
}

/// The records of drops before the cutoff, which nobody can take back.
pub(crate) fn old(kv: &dyn TxKv, cutoff_us: i64) -> Result<Vec<Bytes>> {
    let mut old = Vec::new();
    for entry in kv.scan(Space::Dropped, KeyRange::all(), Direction::Forward)? {
        let (key, value) = entry?;
        let at_us = KeyReader::new(&value).i64().map_err(|_| Error::Damaged { what: "list of dropped tables" })?;
        if at_us <= cutoff_us {
            old.push(key);
        }
    }
    Ok(old)
}
