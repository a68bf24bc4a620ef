//! Rows in the store: fresh rows by generation, and delete bitmaps of shards.
//!
//! | space | key | value |
//! |---|---|---|
//! | `Generations` | table's oid (4) | the active generation (8), the sealed one (8; 0 for none) |
//! | `Rows` | table's oid (4), generation (8), row id (8) | the commit (8), the tuple; empty: the sealed generation's row is deleted |
//! | `Deletes` | table's oid (4), shard id (16), number (4) | XXH3 of the rest (8), a Roaring bitmap of positions in the shard |
//!
//! Rows of a generation that the table's record does not name belong to no state and are removed in the background.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use roaring::RoaringBitmap;
use rowstore::{FreshRows, RowVersion, SealedLayer, Tuple, UncommittedRows};
use types::{CommitTs, InjectedBug, Oid, RowId, ShardId};
use xxhash_rust::xxh3::xxh3_64;

use crate::{CatalogState, CompactedShards, DeleteBitmap, Error, FlushedRows, ObjectKind, Result, Table, TableRows};

const CHECKSUM_BYTES: usize = 8;
const COMMIT_BYTES: usize = 8;

/// Adds to `batch` what a commit of `own`, which must be bound to exactly `before`, writes.
pub fn write(before: &TableRows, table: Oid, own: &UncommittedRows, commit: CommitTs, batch: &mut Batch) {
    let fresh = &before.fresh;
    for row in own.layer.hidden().filter(|row| own.layer.get(*row).is_none()) {
        let key = row_key(table, fresh.generation, row);
        if fresh.is_sealed(row) && !InjectedBug::NoTombstone.is_active() {
            batch.put(Space::UnflushedRows, key, Bytes::new());
        } else {
            batch.delete(Space::UnflushedRows, key);
        }
    }
    for (id, row) in own.layer.rows() {
        put_row(table, fresh.generation, id, row, commit, batch);
    }
    for (shard, places) in own.deleted_in_shards.iter().filter(|_| !InjectedBug::DeletesNotStored.is_active()) {
        write_delete_bitmap(before.shards.deleted.get(shard), table, *shard, places, batch);
    }
}

/// Adds the rows of a table that was created as a clone.
pub(super) fn write_cloned(rows: &TableRows, table: Oid, commit: CommitTs, batch: &mut Batch) {
    put_generations(table, rows.fresh.generation, None, batch);
    for (id, row) in rows.fresh.active.rows() {
        put_row(table, rows.fresh.generation, id, row, commit, batch);
    }
    for (shard, deleted) in &rows.shards.deleted {
        write_delete_bitmap(None, table, *shard, &deleted.positions, batch);
    }
}

fn put_row(table: Oid, generation: u64, id: RowId, row: &RowVersion, commit: CommitTs, batch: &mut Batch) {
    let mut value = Vec::with_capacity(COMMIT_BYTES + row.tuple.as_bytes().len());
    value.extend(commit.0.to_be_bytes());
    value.extend_from_slice(row.tuple.as_bytes());
    batch.put(Space::UnflushedRows, row_key(table, generation, id), value);
}

/// Adds the generations after sealing the active layer.
pub(super) fn write_sealed(before: &TableRows, table: Oid, batch: &mut Batch) {
    let sealed = before.fresh.generation;
    put_generations(table, sealed + 1, Some(sealed), batch);
}

/// Adds what the flush of the sealed layer writes.
pub(super) fn write_flushed(before: &TableRows, table: Oid, flushed: &FlushedRows, batch: &mut Batch) {
    let fresh = &before.fresh;
    put_generations(table, fresh.generation, None, batch);
    for row in fresh.active.hidden().filter(|row| fresh.active.get(*row).is_none()) {
        batch.delete(Space::UnflushedRows, row_key(table, fresh.generation, row));
    }
    for (shard, places) in before.deleted_when_flushed(flushed) {
        write_delete_bitmap(None, table, shard, &places, batch);
    }
}

/// Adds the delete bitmaps after replacing shards by compacted ones.
pub(super) fn write_compacted(before: &TableRows, table: Oid, compacted: &CompactedShards, batch: &mut Batch) {
    for shard in compacted.removed.keys() {
        remove_delete_bitmap(before, table, *shard, batch);
    }
    for (shard, places) in before.deleted_when_compacted(compacted) {
        write_delete_bitmap(None, table, shard, &places, batch);
    }
}

/// Removes all rows of a table; `stays` is false if the table is dropped too.
pub(super) fn write_removal_of_all_rows(before: &TableRows, table: Oid, stays: bool, batch: &mut Batch) {
    for shard in before.shards.deleted.keys() {
        remove_delete_bitmap(before, table, *shard, batch);
    }
    if stays {
        put_generations(table, before.fresh.generation + 1, None, batch);
    } else {
        batch.delete(Space::RowStoreGenerations, KeyWriter::new().u32(table.0).finish());
    }
}

fn put_generations(table: Oid, active: u64, sealed: Option<u64>, batch: &mut Batch) {
    let key = KeyWriter::new().u32(table.0).finish();
    let value = KeyWriter::new().u64(active).u64(sealed.unwrap_or(0)).finish();
    batch.put(Space::RowStoreGenerations, key, value);
}

fn write_delete_bitmap(
    known: Option<&Arc<DeleteBitmap>>,
    table: Oid,
    shard: ShardId,
    places: &RoaringBitmap,
    batch: &mut Batch,
) {
    let none = DeleteBitmap::default();
    let known = known.map_or(&none, |known| known);
    let (record, folds) = known.next_record();
    if folds {
        (1..known.records).for_each(|record| {
            batch.delete(Space::DeletedRows, deletes_key(table, shard, record));
        });
    }
    let all;
    let places = if folds {
        all = &known.positions | places;
        &all
    } else {
        places
    };
    let mut value = vec![0; CHECKSUM_BYTES];
    places.serialize_into(&mut value).expect("writing to memory does not fail");
    let checksum = xxh3_64(&value[CHECKSUM_BYTES..]);
    value[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_be_bytes());
    batch.put(Space::DeletedRows, deletes_key(table, shard, record), value);
}

fn remove_delete_bitmap(before: &TableRows, table: Oid, shard: ShardId, batch: &mut Batch) {
    let records = before.shards.deleted.get(&shard).map_or(0, |deleted| deleted.records);
    for record in 0..records {
        batch.delete(Space::DeletedRows, deletes_key(table, shard, record));
    }
}

/// Reads the rows of all tables into `state`, whose shards are already there.
pub(super) fn read(kv: &dyn TxKv, state: &mut CatalogState) -> Result<()> {
    let tables: Vec<Arc<Table>> = state.tables().map(Arc::clone).collect();
    let mut deleted = read_delete_bitmaps(kv)?;
    for table in tables {
        let mut rows = TableRows::clone(state.rows(table.oid));
        let committed = rows.committed_mut();
        for (shard, deleted) in deleted.remove(&table.oid).unwrap_or_default() {
            committed
                .shards
                .find(shard)
                .ok_or_else(|| damaged(table.oid, "deleted rows of a shard it does not have"))?;
            committed.shards.deleted_rows += deleted.positions.len();
            committed.shards.deleted.insert(shard, Arc::new(deleted));
        }
        committed.fresh = read_fresh(kv, &table)?;
        state.set_rows(table.oid, rows);
    }
    match deleted.keys().next() {
        Some(&table) => Err(damaged(table, "deleted rows of no table")),
        None => Ok(()),
    }
}

fn read_fresh(kv: &dyn TxKv, table: &Table) -> Result<FreshRows> {
    let mut fresh = FreshRows::default();
    let (active, sealed) = generations(kv, table.oid)?;
    fresh.generation = active;
    if let Some(generation) = sealed {
        let mut below = FreshRows { generation, ..FreshRows::default() };
        read_generation(kv, table, &mut below)?;
        fresh.sealed = Some(SealedLayer { generation, rows: below.active });
    }
    read_generation(kv, table, &mut fresh)?;
    Ok(fresh)
}

/// Reads the rows of `fresh.generation` into the active layer.
fn read_generation(kv: &dyn TxKv, table: &Table, fresh: &mut FreshRows) -> Result<()> {
    let prefix = generation_prefix(table.oid, fresh.generation);
    for entry in kv.scan(Space::UnflushedRows, KeyRange::prefix(&prefix), Direction::Forward)? {
        let (key, value) = entry?;
        let id = key.get(prefix.len()..).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
        let id = RowId(id.ok_or_else(|| Error::UnknownKey { key: key.to_vec() })?);
        if value.is_empty() {
            fresh.remove(id);
            continue;
        }
        let ts = value.first_chunk().ok_or_else(|| damaged(table.oid, "a row is truncated"))?;
        let ts = CommitTs(u64::from_be_bytes(*ts));
        let tuple =
            Tuple::validate(value.slice(COMMIT_BYTES..)).map_err(|error| damaged(table.oid, &error.to_string()))?;
        let keys = table.index_entries(id, &tuple)?;
        fresh.put(id, Arc::new(RowVersion { commit_ts: ts, tuple, index_entries: keys }));
    }
    Ok(())
}

type DeletedByTable = BTreeMap<Oid, BTreeMap<ShardId, DeleteBitmap>>;

fn read_delete_bitmaps(kv: &dyn TxKv) -> Result<DeletedByTable> {
    let mut tables = DeletedByTable::new();
    for entry in kv.scan(Space::DeletedRows, KeyRange::all(), Direction::Forward)? {
        let (key, value) = entry?;
        let unknown = |_| Error::UnknownKey { key: key.to_vec() };
        let mut reader = KeyReader::new(&key);
        let table = Oid(reader.u32().map_err(unknown)?);
        let shard = ShardId::from(reader.u128().map_err(unknown)?.to_be_bytes());
        reader.u32().and_then(|_| reader.finish()).map_err(unknown)?;
        let (checksum, bitmap) = value
            .split_first_chunk::<CHECKSUM_BYTES>()
            .ok_or_else(|| damaged(table, "a delete bitmap is truncated"))?;
        if xxh3_64(bitmap) != u64::from_be_bytes(*checksum) {
            return Err(damaged(table, "the checksum of a delete bitmap does not match"));
        }
        let places =
            RoaringBitmap::deserialize_from(bitmap).map_err(|_| damaged(table, "a delete bitmap is invalid"))?;
        tables.entry(table).or_default().entry(shard).or_default().add(&places);
    }
    Ok(tables)
}

/// Returns the key prefixes of rows whose generation no table has any more: it was flushed, or the table was emptied or
/// dropped.
///
/// # Errors
/// Returns the store's errors.
pub fn retired_prefixes(kv: &dyn TxKv) -> Result<Vec<Bytes>> {
    let mut retired = Vec::new();
    let mut from = KeyRange::all();
    loop {
        let first = kv.scan(Space::UnflushedRows, from, Direction::Forward)?.next().transpose()?;
        let Some((key, _)) = first else { return Ok(retired) };
        let mut reader = KeyReader::new(&key);
        let unknown = |_| Error::UnknownKey { key: key.to_vec() };
        let (table, generation) = (Oid(reader.u32().map_err(unknown)?), reader.u64().map_err(unknown)?);
        // Looked up after the key was found: the rows of a generation and its record are written together, and a
        // generation that no longer belongs to the table never does again.
        let exists = kv.get(Space::Catalog, &super::object_key(ObjectKind::Table, table))?.is_some();
        let (active, sealed) = generations(kv, table)?;
        if !exists || (generation != active && Some(generation) != sealed) {
            retired.push(Bytes::from(generation_prefix(table, generation)));
        }
        from = KeyRange::from(generation_prefix(table, generation + 1));
    }
}

/// Reads the active and the sealed generation of a table.
fn generations(kv: &dyn TxKv, table: Oid) -> Result<(u64, Option<u64>)> {
    let Some(record) = kv.get(Space::RowStoreGenerations, &KeyWriter::new().u32(table.0).finish())? else {
        return Ok((FreshRows::default().generation, None));
    };
    let malformed = |_| damaged(table, "its generations");
    let mut reader = KeyReader::new(&record);
    let active = reader.u64().map_err(malformed)?;
    let sealed = reader.u64().map_err(malformed)?;
    reader.finish().map_err(malformed)?;
    Ok((active, (sealed != 0).then_some(sealed)))
}

fn generation_prefix(table: Oid, generation: u64) -> Vec<u8> {
    KeyWriter::new().u32(table.0).u64(generation).finish()
}

fn row_key(table: Oid, generation: u64, row: RowId) -> Vec<u8> {
    KeyWriter::new().u32(table.0).u64(generation).u64(row.0).finish()
}

fn deletes_key(table: Oid, shard: ShardId, record: u32) -> Vec<u8> {
    KeyWriter::new().u32(table.0).u128(shard.0.as_u128()).u32(record).finish()
}

fn damaged(table: Oid, reason: &str) -> Error {
    Error::Damaged { kind: ObjectKind::Table, oid: table, reason: reason.to_owned() }
}
