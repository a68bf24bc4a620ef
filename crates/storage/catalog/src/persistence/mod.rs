//! Catalog in the store: the keys that a change writes, and the state read from the keys.
//!
//! | space | key | value |
//! |---|---|---|
//! | `Catalog` | kind (1 byte), oid (4) | the object's record |
//! | `Shards` | table's oid (4), shard id (16) | a record of the shard's metadata, its commit and its place in the table |
//!
//! `shards.rs` stores shards, `rows.rs` rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::shards::ShardMeta;
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use serde::Serialize;
use types::{CommitTs, Oid};

use crate::record_format::{decode, encode, kind_byte, kind_from_byte};
use crate::{
    CatalogState, Change, Database, Error, ObjectKind, Result, Role, Sample, Schema, Sequence, Table, View, validation,
};

pub mod rows;
mod shards;

#[cfg(test)]
mod tests;

/// Adds to `batch` the keys and records that `change` writes when commit `commit` applies it to `before`.
pub fn write(before: &CatalogState, change: &Change, commit: CommitTs, batch: &mut Batch) {
    match change {
        Change::PutDatabase(database) => put(batch, ObjectKind::Database, database.oid, database),
        Change::PutSchema(schema) => put(batch, ObjectKind::Schema, schema.oid, schema),
        Change::PutTable(table) => {
            put(batch, ObjectKind::Table, table.oid, table);
            for sequence in before.sequences_dropped_by(table) {
                delete(batch, ObjectKind::Sequence, sequence.oid);
            }
        }
        Change::PutView(view) => put(batch, ObjectKind::View, view.oid, view),
        Change::PutSequence(sequence) => put(batch, ObjectKind::Sequence, sequence.oid, sequence),
        Change::PutRole(role) => put(batch, ObjectKind::Role, role.oid, role),
        Change::DropSchema(oid) => delete(batch, ObjectKind::Schema, *oid),
        Change::DropView(oid) => delete(batch, ObjectKind::View, *oid),
        Change::DropSequence(oid) => delete(batch, ObjectKind::Sequence, *oid),
        Change::DropRole(oid) => delete(batch, ObjectKind::Role, *oid),
        Change::DropTable(oid) => {
            delete(batch, ObjectKind::Table, *oid);
            shards::delete(before, *oid, batch);
            rows::write_removal_of_all_rows(before.rows(*oid), *oid, false, batch);
            for sequence in before.owned_sequences(*oid) {
                delete(batch, ObjectKind::Sequence, sequence.oid);
            }
        }
        Change::RemoveAllRows { table } => {
            shards::delete(before, *table, batch);
            rows::write_removal_of_all_rows(before.rows(*table), *table, true, batch);
        }
        Change::AddShards { table, shards, sample } => {
            shards::put(before, *table, shards, commit, batch);
            if let Some(sample) = sample {
                put(batch, ObjectKind::Sample, *table, sample);
            }
        }
        Change::SealFreshRows { table } => rows::write_sealed(before.rows(*table), *table, batch),
        Change::Flush { table, flushed } => {
            shards::put(before, *table, &flushed.shards, commit, batch);
            if let Some(sample) = &flushed.sample {
                put(batch, ObjectKind::Sample, *table, sample);
            }
            rows::write_flushed(before.rows(*table), *table, flushed, batch);
        }
        Change::CloneRows { table, rows } => {
            // A change that cannot be applied writes nothing; its application returns the error.
            let cloned = before.table(*table).and_then(|owner| before.rows(*table).clone_rows_from(rows, owner).ok());
            if let Some(cloned) = cloned {
                let shards: Vec<Arc<ShardMeta>> = cloned.shards.shards.iter_for_store().collect();
                shards::put(before, *table, &shards, commit, batch);
                if let Some(sample) = &cloned.shards.sample {
                    put(batch, ObjectKind::Sample, *table, sample);
                }
                rows::write_cloned(&cloned, *table, commit, batch);
            }
        }
        Change::CompactShards { table, compacted } => {
            for shard in compacted.removed.keys() {
                batch.delete(Space::Shards, shards::key(*table, *shard));
            }
            shards::put(before, *table, &compacted.shards, commit, batch);
            rows::write_compacted(before.rows(*table), *table, compacted, batch);
        }
    }
}

/// Adds all definitions of `state`, which has no shards, to `batch`; used to initialize an empty store.
pub fn write_all(state: &CatalogState, batch: &mut Batch) {
    put(batch, ObjectKind::Database, state.database().oid, state.database());
    state.schemas().for_each(|schema| put(batch, ObjectKind::Schema, schema.oid, schema));
    state.roles().for_each(|role| put(batch, ObjectKind::Role, role.oid, role));
    state.tables().for_each(|table| put(batch, ObjectKind::Table, table.oid, table));
    state.views().for_each(|view| put(batch, ObjectKind::View, view.oid, view));
    state.sequences().for_each(|sequence| put(batch, ObjectKind::Sequence, sequence.oid, sequence));
}

/// Reads the state from the store, with an upgrade batch that must be written before anything else; `None` if the store
/// holds no catalog.
pub fn read(kv: &dyn TxKv) -> Result<Option<(CatalogState, Batch)>> {
    let mut found = StoredObjects::default();
    for entry in kv.scan(Space::Catalog, KeyRange::all(), Direction::Forward)? {
        let (key, value) = entry?;
        found.add(&key, &value)?;
    }
    let Some(database) = found.database else {
        return Ok(None);
    };
    let mut state = CatalogState::with_database(Arc::new(database));
    found.schemas.iter().for_each(|schema| state.definitions_mut().put_schema(schema));
    found.roles.iter().for_each(|role| state.definitions_mut().put_role(role));
    found.tables.iter().for_each(|table| state.put_table(table));
    found.views.iter().for_each(|view| state.definitions_mut().put_view(view));
    found.sequences.iter().for_each(|sequence| state.definitions_mut().put_sequence(sequence));
    let mut upgrade = Batch::new();
    shards::read(kv, &mut state, found.samples, &mut upgrade)?;
    rows::read(kv, &mut state)?;
    state.record_all_shared_shards();
    verify(&state, found.tables.len() + found.views.len() + found.sequences.len())?;
    Ok(Some((state, upgrade)))
}

#[derive(Default)]
struct StoredObjects {
    database: Option<Database>,
    schemas: Vec<Arc<Schema>>,
    roles: Vec<Arc<Role>>,
    tables: Vec<Arc<Table>>,
    views: Vec<Arc<View>>,
    sequences: Vec<Arc<Sequence>>,
    samples: BTreeMap<Oid, Arc<Sample>>,
}

impl StoredObjects {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let unknown = || Error::UnknownKey { key: key.to_vec() };
        let mut reader = KeyReader::new(key);
        let kind = kind_from_byte(reader.u8().map_err(|_| unknown())?).ok_or_else(unknown)?;
        let oid = Oid(reader.u32().map_err(|_| unknown())?);
        reader.finish().map_err(|_| unknown())?;
        match kind {
            ObjectKind::Database => self.database = Some(decode(kind, oid, value)?),
            ObjectKind::Schema => self.schemas.push(decode(kind, oid, value)?),
            ObjectKind::Role => self.roles.push(decode(kind, oid, value)?),
            ObjectKind::Table => self.tables.push(decode(kind, oid, value)?),
            ObjectKind::View => self.views.push(decode(kind, oid, value)?),
            ObjectKind::Sequence => self.sequences.push(decode(kind, oid, value)?),
            ObjectKind::Sample => {
                self.samples.insert(oid, decode(kind, oid, value)?);
            }
            ObjectKind::Relation | ObjectKind::Shard => return Err(unknown()),
        }
        Ok(())
    }
}

/// Checks that a state read from the store fulfils the invariants.
fn verify(state: &CatalogState, relation_count: usize) -> Result<()> {
    validation::database(state, state.database())?;
    state.schemas().try_for_each(|schema| validation::schema(state, schema))?;
    state.roles().try_for_each(|role| validation::role(state, role))?;
    state.tables().try_for_each(|table| validation::table(state, table))?;
    state.views().try_for_each(|view| validation::view(state, view))?;
    state.sequences().try_for_each(|sequence| validation::sequence(state, sequence))?;
    validation::superuser_remains(state, "")?;
    // If two relations have the same name, the later one has hidden the earlier.
    let named: usize = state.definitions.relation_names.values().map(imbl::OrdMap::len).sum();
    if named != relation_count {
        let reason = format!("{relation_count} relations share {named} names");
        return Err(Error::Damaged { kind: ObjectKind::Relation, oid: Oid::default(), reason });
    }
    Ok(())
}

fn put<T: Serialize>(batch: &mut Batch, kind: ObjectKind, oid: Oid, object: &Arc<T>) {
    batch.put(Space::Catalog, object_key(kind, oid), encode(kind, oid, &**object));
}

fn delete(batch: &mut Batch, kind: ObjectKind, oid: Oid) {
    batch.delete(Space::Catalog, object_key(kind, oid));
}

fn object_key(kind: ObjectKind, oid: Oid) -> Vec<u8> {
    KeyWriter::new().u8(kind_byte(kind)).u32(oid.0).finish()
}
