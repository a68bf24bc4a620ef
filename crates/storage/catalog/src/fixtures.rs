//! Test fixtures: small catalog objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use shards::{ColumnStats, Datum, Hll, RowGroupMeta, ShardMeta};
use types::{ColumnId, Oid, ShardId, SqlType};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    CatalogState, Change, Column, Constraint, ConstraintKind, Distribution, ReferentialAction, Role, Schema, Table,
    TableOrder, View,
};

/// Builds an integer column.
pub(crate) fn column(id: i32, name: &str) -> Column {
    Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type: SqlType::Int4,
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    }
}

/// Builds a table in `public` with the columns `a` (1) and `b` (2).
pub(crate) fn table(oid: u32, name: &str) -> Table {
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
        storage: crate::Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: types::CachePolicy::default(),
        external: None,
    }
}

/// A view in `public` that reads column `a` (1) of the relations.
pub(crate) fn view(oid: u32, name: &str, reads: &[u32]) -> View {
    View {
        oid: Oid(oid),
        schema: Schema::PUBLIC,
        name: name.to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![("a".to_owned(), SqlType::Int4)],
        definition: "SELECT a".to_owned(),
        depends_on: reads.iter().map(|&oid| Oid(oid)).collect(),
        columns_used: reads.iter().map(|&oid| (Oid(oid), ColumnId(1))).collect(),
        comment: None,
        column_comments: BTreeMap::new(),
    }
}

pub(crate) fn schema(oid: u32, name: &str) -> Schema {
    Schema { oid: Oid(oid), name: name.to_owned(), owner: Role::BOOTSTRAP, comment: None }
}

pub(crate) fn role(oid: u32, name: &str) -> Role {
    let kiln = CatalogState::new_warehouse().role(Role::BOOTSTRAP).cloned().expect("a fresh catalog has it");
    Role { oid: Oid(oid), name: name.to_owned(), superuser: false, ..Role::clone(&kiln) }
}

/// Builds a foreign key from column `a` to column `a` of the other table.
pub(crate) fn foreign_key(oid: u32, name: &str, references: u32) -> Constraint {
    Constraint {
        oid: Oid(oid),
        name: name.to_owned(),
        kind: ConstraintKind::ForeignKey {
            columns: vec![ColumnId(1)],
            references: Oid(references),
            referenced: vec![ColumnId(1)],
            on_update: ReferentialAction::NoAction,
            on_delete: ReferentialAction::Cascade,
            delete_columns: Vec::new(),
        },
        enforced: false,
        comment: None,
    }
}

/// Builds a shard of the table whose column `a` contains each of `values` once, ascending.
pub(crate) fn shard(table: u32, id: u128, values: std::ops::Range<i64>) -> Arc<ShardMeta> {
    let rows = values.clone().count() as u64;
    let mut distinct = Hll::default();
    values.clone().for_each(|value| distinct.add_hash(xxh3_64(&value.to_le_bytes())));
    let id = ShardId(uuid::Uuid::from_u128(id));
    Arc::new(ShardMeta {
        id,
        object: format!("tables/{table}/{id}.parquet"),
        rows,
        bytes: rows * 10,
        tail_bytes: 8,
        tail_checksum: 7,
        columns: vec![ColumnStats {
            column: ColumnId(1),
            nulls_guessed: false,
            nulls: 0,
            min: Some(Datum::Int(values.start)),
            max: Some(Datum::Int(values.end - 1)),
            bounds_exact: true,
            distinct,
            ascending: true,
            strictly_ascending: true,
            average_run: 1.0,
            heavy_hitters: Vec::new(),
            bytes: rows * 4,
        }],
        row_groups: vec![RowGroupMeta { rows, bytes: rows * 10 }],
        row_ids: shards::RowIds::From(types::RowId(1)),
        buckets: None,
    })
}

/// Returns a new catalog after `changes`.
pub(crate) fn state(changes: impl IntoIterator<Item = Change>) -> CatalogState {
    changes.into_iter().fold(CatalogState::new_warehouse(), |state, change| state.apply(&change).unwrap())
}

pub(crate) fn put_table(table: Table) -> Change {
    Change::PutTable(Arc::new(table))
}

pub(crate) fn put_view(view: View) -> Change {
    Change::PutView(Arc::new(view))
}

pub(crate) fn put_schema(schema: Schema) -> Change {
    Change::PutSchema(Arc::new(schema))
}

pub(crate) fn put_role(role: Role) -> Change {
    Change::PutRole(Arc::new(role))
}

pub(crate) fn add_shards(table: u32, shards: Vec<Arc<ShardMeta>>) -> Change {
    Change::AddShards { table: Oid(table), shards, sample: None }
}
