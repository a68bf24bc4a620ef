//! Shards in the store, one record each. They are read in portions, so that a table's records are never all in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::shards::{PackedShards, RowIds, ShardMeta};
use bytes::Bytes;
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use serde::{Deserialize, Serialize};
use types::{CommitTs, Oid, RowId, ShardId};

use crate::record_format::{decode, encode};
use crate::{CatalogState, CommittedRows, Error, ObjectKind, Result, Sample, validation};

/// Stored shard, decoded.
#[derive(Deserialize)]
struct StoredShard {
    commit: CommitTs,
    place: u64,
    shard: ShardMeta,
}

/// The fields of a stored shard that determine its order.
#[derive(Deserialize)]
struct StoredOrder {
    commit: CommitTs,
    place: u64,
}

/// Shard to be stored.
#[derive(Serialize)]
struct ShardToStore<'a> {
    /// Commit that added the shard.
    commit: CommitTs,
    /// Index among the table's shards when it was added; `commit` and `place` together determine the order.
    place: u64,
    shard: &'a ShardMeta,
}

/// Shard found in the store.
struct FoundShard {
    commit: CommitTs,
    place: u64,
    id: ShardId,
    /// The shard; `None` in tables with many shards, where it is read later.
    shard: Option<ShardMeta>,
}

/// Maximum number of a table's shards that are decoded at the first reading.
const DECODED_SHARDS_MAX: usize = PackedShards::COUNT_MAX;
/// Number of shards that are read at a time later.
const SHARDS_PER_READ: usize = 256;

/// First id assigned to rows of shards from versions without row ids; no other row has such a high id.
const OLD_SHARDS_FIRST_ROW_ID: u64 = 1 << 63;

/// Reads the shards of all tables into `state`, with the samples; records that must be rewritten are added to
/// `upgrade`.
pub(super) fn read(
    kv: &dyn TxKv,
    state: &mut CatalogState,
    mut samples: BTreeMap<Oid, Arc<Sample>>,
    upgrade: &mut Batch,
) -> Result<()> {
    let mut by_table: BTreeMap<Oid, Vec<FoundShard>> = BTreeMap::new();
    for entry in kv.scan(Space::Shards, KeyRange::all(), Direction::Forward)? {
        let (key, value) = entry?;
        let (table, id) = parse_shard_key(&key)?;
        let found = by_table.entry(table).or_default();
        if found.len() < DECODED_SHARDS_MAX {
            let StoredShard { commit, place, shard } = decode_shard(table, id, &value)?;
            found.push(FoundShard { commit, place, id, shard: Some(shard) });
        } else {
            if found.len() == DECODED_SHARDS_MAX {
                found.iter_mut().for_each(|found| found.shard = None);
            }
            let StoredOrder { commit, place } = decode(ObjectKind::Shard, table, &value)?;
            found.push(FoundShard { commit, place, id, shard: None });
        }
    }
    let tables: Vec<Oid> = state.definitions.tables.keys().copied().collect();
    for table in tables {
        let mut found = by_table.remove(&table).unwrap_or_default();
        let sample = samples.remove(&table);
        if found.is_empty() && sample.is_none() {
            continue;
        }
        found.sort_by_key(|found| (found.commit, found.place));
        let mut rows = state.shards(table).append(&[], sample.as_ref());
        let mut next_row = RowId(OLD_SHARDS_FIRST_ROW_ID);
        for found in found.chunks_mut(SHARDS_PER_READ) {
            read_shards_in_portions(kv, table, found)?;
            let shards = found.iter_mut().filter_map(|found| {
                let mut shard = found.shard.take()?;
                if shard.row_ids == RowIds::None {
                    shard.row_ids = RowIds::From(next_row);
                    next_row.0 += shard.rows;
                    let again = ShardToStore { commit: found.commit, place: found.place, shard: &shard };
                    upgrade.put(Space::Shards, key(table, shard.id), encode(ObjectKind::Shard, table, &again));
                }
                Some(Arc::new(shard))
            });
            let shards: Vec<Arc<ShardMeta>> = shards.collect();
            validation::shards(&state.definitions.tables[&table], &shards)?;
            rows = rows.append(&shards, None);
        }
        state.set_rows(table, CommittedRows { shards: rows, ..CommittedRows::default() }.into());
    }
    if let Some(&table) = by_table.keys().chain(samples.keys()).next() {
        let reason = "its table does not exist".to_owned();
        return Err(Error::Damaged { kind: ObjectKind::Shard, oid: table, reason });
    }
    Ok(())
}

/// Reads the shards that were not decoded before.
fn read_shards_in_portions(kv: &dyn TxKv, table: Oid, found: &mut [FoundShard]) -> Result<()> {
    let left: Vec<&mut FoundShard> = found.iter_mut().filter(|found| found.shard.is_none()).collect();
    let keys: Vec<Vec<u8>> = left.iter().map(|found| key(table, found.id)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    if keys.is_empty() {
        return Ok(());
    }
    for (found, value) in left.into_iter().zip(kv.multi_get(Space::Shards, &keys)?) {
        let gone = || Error::UnknownKey { key: key(table, found.id) };
        let value: Bytes = value.ok_or_else(gone)?;
        found.shard = Some(decode_shard(table, found.id, &value)?.shard);
    }
    Ok(())
}

fn decode_shard(table: Oid, id: ShardId, value: &[u8]) -> Result<StoredShard> {
    let stored: StoredShard = decode(ObjectKind::Shard, table, value)?;
    if stored.shard.id == id {
        return Ok(stored);
    }
    let reason = format!("shard {} lies under the key of another", stored.shard.id);
    Err(Error::Damaged { kind: ObjectKind::Shard, oid: table, reason })
}

/// Adds the shards that a commit appends to a table.
pub(super) fn put(before: &CatalogState, table: Oid, shards: &[Arc<ShardMeta>], commit: CommitTs, batch: &mut Batch) {
    let start = before.shards(table).shards.len() as u64;
    for (place, shard) in (start..).zip(shards) {
        let record = encode(ObjectKind::Shard, table, &ShardToStore { commit, place, shard });
        batch.put(Space::Shards, key(table, shard.id), record);
    }
}

/// Removes all shards of a table, and its sample.
pub(super) fn delete(before: &CatalogState, table: Oid, batch: &mut Batch) {
    let shards = before.shards(table);
    for shard in shards.shards.ids() {
        batch.delete(Space::Shards, key(table, shard));
    }
    if shards.sample.is_some() {
        super::delete(batch, ObjectKind::Sample, table);
    }
}

pub(super) fn key(table: Oid, shard: ShardId) -> Vec<u8> {
    KeyWriter::new().u32(table.0).u128(shard.0.as_u128()).finish()
}

fn parse_shard_key(key: &[u8]) -> Result<(Oid, ShardId)> {
    let unknown = || Error::UnknownKey { key: key.to_vec() };
    let mut reader = KeyReader::new(key);
    let table = Oid(reader.u32().map_err(|_| unknown())?);
    let id = reader.u128().map_err(|_| unknown())?;
    reader.finish().map_err(|_| unknown())?;
    Ok((table, ShardId::from(id.to_be_bytes())))
}
