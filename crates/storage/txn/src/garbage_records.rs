//! Garbage records: objects that a commit removed from the catalog, recorded until they are deleted.
//!
//! The space `GarbageRecord` has one key per object: the commit (8 bytes), then the object's name. The value is the time
//! until which the object was referenced (8 bytes), or empty if no committed state ever referenced it.

use catalog::{CatalogState, Change};
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::CommitTs;

use crate::{Error, Result};

/// An object that no state references from a commit on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GarbageRecord {
    pub(crate) garbage_since: CommitTs,
    pub(crate) object: String,
    /// Time of that commit in microseconds since 1970; `None` if no committed state ever referenced the object.
    pub(crate) referenced_until_us: Option<i64>,
}

impl GarbageRecord {
    pub(crate) fn put(&self, batch: &mut Batch) {
        let value = self.referenced_until_us.map(|us| us.to_be_bytes().to_vec());
        batch.put(Space::GarbageObjects, self.key(), value.unwrap_or_default());
    }

    pub(crate) fn delete(&self, batch: &mut Batch) {
        batch.delete(Space::GarbageObjects, self.key());
    }

    fn key(&self) -> Vec<u8> {
        KeyWriter::new().u64(self.garbage_since.0).str(&self.object).finish()
    }
}

/// Returns the objects that `change`, applied to `before`, removes from the catalog: those of removed shards that no
/// other table shares.
pub(crate) fn objects_removed(before: &CatalogState, change: &Change) -> Vec<String> {
    let (table, compacted) = match change {
        Change::CompactShards { table, compacted } => (*table, Some(compacted)),
        Change::DropTable(table) | Change::RemoveAllRows { table } => (*table, None),
        _ => return Vec::new(),
    };
    let shared = before.shared_shards(table);
    let shards = &before.shards(table).shards;
    if let Some(compacted) = compacted {
        let removed = compacted.removed.keys().filter(|shard| !shared.contains(*shard));
        return removed.filter_map(|shard| Some(shards.find(*shard)?.1.object.clone())).collect();
    }
    let all = shards.ids().zip(shards.objects());
    all.filter(|(shard, _)| !shared.contains(shard)).map(|(_, object)| object.into_owned()).collect()
}

/// Reads up to `count` garbage records after `after` that no snapshot at or after `horizon` references, and that no
/// state has referenced since `cutoff_us`.
pub(crate) fn read(
    kv: &dyn TxKv,
    after: Option<&GarbageRecord>,
    horizon: CommitTs,
    cutoff_us: i64,
    count: usize,
) -> Result<Vec<GarbageRecord>> {
    let start = after.map_or_else(Vec::new, |garbage| {
        // The smallest key after the one of `garbage`.
        let mut key = garbage.key();
        key.push(0);
        key
    });
    let end = KeyWriter::new().u64(horizon.0.saturating_add(1)).finish();
    let entries = kv.scan(Space::GarbageObjects, KeyRange::between(start, end), Direction::Forward)?;
    let garbage = entries.map(|entry| {
        let (key, value) = entry?;
        let mut reader = KeyReader::new(&key);
        let damaged = |_| Error::Damaged { what: "list of garbage objects" };
        let since = CommitTs(reader.u64().map_err(damaged)?);
        let object = reader.str().map_err(damaged)?;
        let named_until_us = <[u8; 8]>::try_from(&value[..]).ok().map(i64::from_be_bytes);
        Ok(GarbageRecord { garbage_since: since, object, referenced_until_us: named_until_us })
    });
    let is_old = |garbage: &GarbageRecord| garbage.referenced_until_us.is_none_or(|us| us <= cutoff_us);
    garbage.filter(|garbage| garbage.as_ref().map_or(true, is_old)).take(count).collect()
}
