//! Objects that a commit took out of the catalog, remembered until no snapshot needs them.
//!
//! One key per object in the space `Garbage`: the commit (8 bytes), then the object's name. No value.

use catalog::{CatalogState, Change};
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::{CommitTs, Oid};

use crate::{Error, Result};

/// An object, and the commit after which it is not needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Garbage {
    pub(crate) since: CommitTs,
    pub(crate) object: String,
}

impl Garbage {
    pub(crate) fn put(&self, batch: &mut Batch) {
        batch.put(Space::Garbage, self.key(), Vec::new());
    }

    pub(crate) fn delete(&self, batch: &mut Batch) {
        batch.delete(Space::Garbage, self.key());
    }

    fn key(&self) -> Vec<u8> {
        KeyWriter::new().u64(self.since.0).str(&self.object).finish()
    }
}

/// The objects that `change` takes away when it is made to `before`.
pub(crate) fn objects_removed(before: &CatalogState, change: &Change) -> Vec<String> {
    let of_table = |table: Oid| before.shards(table).shards.iter().map(|shard| shard.object.clone()).collect();
    match change {
        Change::Compact { table, compacted } => {
            let removed = before.shards(*table).shards.iter().filter(|shard| compacted.removed.contains_key(&shard.id));
            removed.map(|shard| shard.object.clone()).collect()
        }
        Change::DropTable(table) | Change::RemoveAllRows { table } => of_table(*table),
        _ => Vec::new(),
    }
}

/// The first `count` that come after `after` and that nobody who looks at `horizon` or later needs.
pub(crate) fn read(kv: &dyn TxKv, after: Option<&Garbage>, horizon: CommitTs, count: usize) -> Result<Vec<Garbage>> {
    let start = after.map_or_else(Vec::new, |garbage| {
        // The smallest key after the one of `garbage`.
        let mut key = garbage.key();
        key.push(0);
        key
    });
    let end = KeyWriter::new().u64(horizon.0.saturating_add(1)).finish();
    let entries = kv.scan(Space::Garbage, KeyRange::between(start, end), Direction::Forward)?;
    entries
        .take(count)
        .map(|entry| {
            let (key, _) = entry?;
            let mut reader = KeyReader::new(&key);
            let damaged = |_| Error::Damaged { what: "list of garbage" };
            let since = CommitTs(reader.u64().map_err(damaged)?);
            let object = reader.str().map_err(damaged)?;
            Ok(Garbage { since, object })
        })
        .collect()
}
