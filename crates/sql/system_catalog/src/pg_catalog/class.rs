//! `pg_class` and `pg_namespace`: relations and schemas.

use std::collections::HashSet;

use types::{CachePolicy, Oid};

use super::super::row_builder::{Cell, RowBuilder, row};
use super::super::row_source::{Relation, RelationObject, RowSource, keys};
use super::super::table_definition::TableDefinition;
use super::access_methods_and_operators;
use super::definition_constructors::catalog;
use crate::sequence_table::SEQUENCE_COLUMNS;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1259,
        "pg_class",
        "Tables, views, indexes and sequences.",
        "oid oid, relname name, relnamespace oid, reltype oid = 0, reloftype oid = 0, relowner oid, relam oid = 0, \
         relfilenode oid = 0, reltablespace oid = 0, relpages int4 = 0, reltuples float4 = -1, relallvisible int4 = 0, \
         reltoastrelid oid = 0, relhasindex bool = f, relisshared bool = f, relpersistence char = p, relkind char, \
         relnatts int2, relchecks int2 = 0, relhasrules bool = f, relhastriggers bool = f, relhassubclass bool = f, \
         relrowsecurity bool = f, relforcerowsecurity bool = f, relispopulated bool = t, relreplident char = d, \
         relispartition bool = f, relrewrite oid = 0, relfrozenxid xid = 0, relminmxid xid = 0, relacl aclitem[], \
         reloptions text[], relpartbound pg_node_tree",
        class,
    ),
    catalog(2615, "pg_namespace", "Schemas.", "oid oid, nspname name, nspowner oid, nspacl aclitem[]", namespace),
];

/// Page size in bytes that `relpages` counts in, as in PostgreSQL.
const PAGE_BYTES: u64 = 8192;

fn class(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let referring = foreign_key_tables(source);
    for relation in source.relations.all() {
        let facts = ClassColumns::from_relation(source, &relation);
        row!(rows, oid: relation.oid, relname: relation.name, relnamespace: relation.schema, relowner: relation.owner,
            relam: facts.access_method, relfilenode: facts.file_node, relpages: facts.bytes.div_ceil(PAGE_BYTES),
            reltuples: facts.row_count, relhasindex: facts.has_index, relpersistence: persistence(source, &relation), relkind: relation.kind(),
            relnatts: facts.attribute_count, relchecks: facts.check_count, relhasrules: relation.kind() == "v", relhastriggers: referring.contains(&relation.oid),
            reloptions: options(&facts), relreplident: if relation.kind() == "r" { "d" } else { "n" });
    }
}

/// Returns the tables with foreign keys and the tables that these refer to. PostgreSQL has triggers on both, and psql
/// looks for foreign keys only on tables with triggers.
fn foreign_key_tables(source: &RowSource<'_>) -> HashSet<Oid> {
    let mut found = HashSet::new();
    for table in source.state().tables() {
        for constraint in &table.constraints {
            if let ::catalog::ConstraintKind::ForeignKey { references, .. } = &constraint.kind {
                found.extend([table.oid, *references]);
            }
        }
    }
    found
}

/// Returns `t` for a temporary relation, else `p`.
fn persistence(source: &RowSource<'_>, relation: &Relation<'_>) -> &'static str {
    let schema = source.state().schema(relation.schema);
    if schema.is_some_and(|schema| schema.is_temporary()) { "t" } else { "p" }
}

/// Returns PostgreSQL's storage parameters, and the cache policy if it is not the default.
fn options(facts: &ClassColumns<'_>) -> Cell {
    let cache = (!facts.cache.is_normal()).then(|| Cell::from(format!("cache={}", facts.cache.name())));
    let options: Vec<Cell> = facts.options.iter().map(|option| Cell::from(option.as_str())).chain(cache).collect();
    if options.is_empty() { Cell::Null } else { Cell::List(options) }
}

/// Properties of a relation in `pg_class`.
struct ClassColumns<'a> {
    row_count: f64,
    bytes: u64,
    attribute_count: usize,
    check_count: usize,
    has_index: bool,
    access_method: u32,
    file_node: u32,
    options: &'a [String],
    cache: CachePolicy,
}

impl<'a> ClassColumns<'a> {
    #[expect(clippy::cast_precision_loss, reason = "reltuples is an estimate by definition")]
    fn from_relation(source: &RowSource<'_>, relation: &Relation<'a>) -> Self {
        let mut facts = ClassColumns {
            row_count: 0.0,
            bytes: 0,
            attribute_count: 0,
            check_count: 0,
            has_index: false,
            access_method: 0,
            file_node: 0,
            options: &[],
            cache: CachePolicy::default(),
        };
        match relation.object {
            RelationObject::Table(table) if table.external.is_some() => {
                // The number of rows in its files is only known once they are read.
                facts.row_count = -1.0;
                facts.attribute_count = table.columns.len();
                facts.cache = table.cache;
            }
            RelationObject::Table(table) => {
                let shards = source.state().shards(table.oid);
                facts.row_count = source.state().rows(table.oid).len() as f64;
                facts.bytes = shards.bytes;
                // Dropped columns count too, as in PostgreSQL: relnatts is the upper bound of attnum.
                facts.attribute_count = usize::try_from(table.next_column - 1).unwrap_or(0);
                facts.check_count = table
                    .constraints
                    .iter()
                    .filter(|constraint| matches!(constraint.kind, ::catalog::ConstraintKind::Check { .. }))
                    .count();
                facts.has_index = keys(table).next().is_some();
                facts.access_method = access_methods_and_operators::SHARDS_ACCESS_METHOD_OID;
                facts.file_node = table.oid.0;
                facts.options = &table.options;
                facts.cache = table.cache;
            }
            RelationObject::View(view) => facts.attribute_count = view.columns.len(),
            RelationObject::Sequence(sequence) => {
                facts.attribute_count = SEQUENCE_COLUMNS.len();
                (facts.row_count, facts.bytes, facts.file_node) = (1.0, PAGE_BYTES, sequence.counter.0);
            }
            RelationObject::KeyOrIndex(key) => {
                facts.row_count = source.state().rows(key.table.oid).len() as f64;
                facts.attribute_count = key.all_columns().count();
                facts.options = key.index.map_or(&[], |index| &index.options);
                facts.access_method = if key.enforced {
                    access_methods_and_operators::BTREE_ACCESS_METHOD_OID
                } else {
                    access_methods_and_operators::UNENFORCED_ACCESS_METHOD_OID
                };
            }
            RelationObject::System(relation) => {
                facts.attribute_count = relation.columns.len();
                facts.row_count = -1.0;
            }
        }
        facts
    }
}

fn namespace(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for schema in source.state().schemas() {
        row!(rows, oid: schema.oid, nspname: &schema.name, nspowner: schema.owner);
    }
}
