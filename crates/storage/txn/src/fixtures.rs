//! Test fixtures: a warehouse in memory, and catalog objects for it.

use std::sync::Arc;

use catalog::{Change, Column, Distribution, Role, Schema, Table, TableOrder};
use kv::sim::SimDisk;
use objects::Objects;
use shards::ShardMeta;
use types::{ColumnId, Oid, ShardId, SqlType, SystemClock, SystemRandom};

use crate::{Isolation, Transaction, Transactions};

/// Opens transactions over the content of the disk.
pub(crate) fn open(disk: &SimDisk, objects: &Objects) -> Arc<Transactions> {
    let kv = disk.open().expect("no other store has opened the disk");
    Transactions::open(Arc::new(kv), objects.clone(), Arc::new(SystemClock::new())).expect("the disk can be read")
}

/// Creates an empty bucket in memory.
pub(crate) fn bucket() -> Objects {
    Objects::open("memory:///", Arc::new(SystemClock::new()), Arc::new(SystemRandom)).expect("memory can be opened")
}

/// Creates an empty warehouse.
pub(crate) fn fresh() -> Arc<Transactions> {
    open(&SimDisk::new(1), &bucket())
}

pub(crate) fn begin(transactions: &Arc<Transactions>) -> Transaction {
    transactions.begin(Isolation::ReadCommitted)
}

/// Commits the changes as one transaction.
pub(crate) async fn commit(transactions: &Arc<Transactions>, changes: Vec<Change>) {
    let mut transaction = begin(transactions);
    transaction.stage(changes).expect("the test's changes are valid");
    transaction.commit().await.expect("no other transaction conflicts");
}

/// Builds a table in `public` with the integer columns `a` (1) and `b` (2).
pub(crate) fn table(oid: u32, name: &str) -> Table {
    let column = |id, name: &str| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type: SqlType::Int4,
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    Table {
        oid: Oid(oid),
        schema: Schema::PUBLIC,
        name: name.to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![column(1, "a"), column(2, "b")],
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 3,
        storage: catalog::Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: types::CachePolicy::default(),
        external: None,
    }
}

pub(crate) fn put(table: Table) -> Change {
    Change::PutTable(Arc::new(table))
}

pub(crate) fn object_name(table: u32, shard: u128) -> String {
    format!("tables/{table}/{}.parquet", ShardId(uuid::Uuid::from_u128(shard)))
}

/// Builds a shard of ten rows without statistics.
pub(crate) fn shard(table: u32, id: u128) -> Arc<ShardMeta> {
    Arc::new(ShardMeta {
        id: ShardId(uuid::Uuid::from_u128(id)),
        object: object_name(table, id),
        rows: 10,
        bytes: 100,
        tail_bytes: 8,
        tail_checksum: 7,
        columns: Vec::new(),
        row_groups: Vec::new(),
        row_ids: shards::RowIds::From(types::RowId((id as u64).wrapping_mul(1_000))),
        buckets: None,
    })
}

pub(crate) fn load(table: u32, shards: &[u128]) -> Change {
    let shards = shards.iter().map(|&id| shard(table, id)).collect();
    Change::AddShards { table: Oid(table), shards, sample: None }
}

/// Returns the ids of a table's shards, in order.
pub(crate) fn shard_ids(state: &catalog::CatalogState, table: u32) -> Vec<u128> {
    state.shards(Oid(table)).shards.ids().map(|shard| shard.0.as_u128()).collect()
}
