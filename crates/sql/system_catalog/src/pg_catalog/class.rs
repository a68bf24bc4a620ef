//! `pg_class` and `pg_namespace`: relations and schemas.

use std::collections::HashSet;

use types::{CachePolicy, Oid};

use super::super::definition::TableDefinition;
use super::super::rows::{Cell, Rows, row};
use super::super::source::{Relation, RelationObject, Source, keys};
use super::access;
use super::constructors::catalog;
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

fn class(source: &Source<'_>, rows: &mut Rows) {
    let referring = foreign_key_tables(source);
    for relation in source.relations.all() {
        let facts = ClassColumns::from_relation(source, &relation);
        row!(rows, oid: relation.oid, relname: relation.name, relnamespace: relation.schema, relowner: relation.owner,
            relam: facts.access_method, relfilenode: facts.file, relpages: facts.bytes.div_ceil(PAGE_BYTES),
            reltuples: facts.rows, relhasindex: facts.has_index, relpersistence: persistence(source, &relation), relkind: relation.kind(),
            relnatts: facts.attributes, relchecks: facts.checks, relhasrules: relation.kind() == "v", relhastriggers: referring.contains(&relation.oid),
            reloptions: options(&facts), relreplident: if relation.kind() == "r" { "d" } else { "n" });
    }
}

/// Returns the tables with foreign keys and the tables that these refer to. PostgreSQL has triggers on both, and psql
/// looks for foreign keys only on tables with triggers.
fn foreign_key_tables(source: &Source<'_>) -> HashSet<Oid> {
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
fn persistence(source: &Source<'_>, relation: &Relation<'_>) -> &'static str {
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
    rows: f64,
    bytes: u64,
    attributes: usize,
    checks: usize,
    has_index: bool,
    access_method: u32,
    file: u32,
    options: &'a [String],
    cache: CachePolicy,
}

impl<'a> ClassColumns<'a> {
    #[expect(clippy::cast_precision_loss, reason = "reltuples is an estimate by definition")]
    fn from_relation(source: &Source<'_>, relation: &Relation<'a>) -> Self {
        let mut facts = ClassColumns {
            rows: 0.0,
            bytes: 0,
            attributes: 0,
            checks: 0,
            has_index: false,
            access_method: 0,
            file: 0,
            options: &[],
            cache: CachePolicy::default(),
        };
        match relation.object {
            RelationObject::Table(table) if table.external.is_some() => {
                // The number of rows in its files is only known once they are read.
                facts.rows = -1.0;
                facts.attributes = table.columns.len();
                facts.cache = table.cache;
            }
            RelationObject::Table(table) => {
                let shards = source.state().shards(table.oid);
                facts.rows = source.state().rows(table.oid).len() as f64;
                facts.bytes = shards.bytes;
                // Dropped columns count too, as in PostgreSQL: relnatts is the upper bound of attnum.
                facts.attributes = usize::try_from(table.next_column - 1).unwrap_or(0);
                facts.checks = table
                    .constraints
                    .iter()
                    .filter(|constraint| matches!(constraint.kind, ::catalog::ConstraintKind::Check { .. }))
                    .count();
                facts.has_index = keys(table).next().is_some();
                facts.access_method = access::SHARDS_OID;
                facts.file = table.oid.0;
                facts.options = &table.options;
                facts.cache = table.cache;
            }
            RelationObject::View(view) => facts.attributes = view.columns.len(),
            RelationObject::Sequence(sequence) => {
                facts.attributes = SEQUENCE_COLUMNS.len();
                (facts.rows, facts.bytes, facts.file) = (1.0, PAGE_BYTES, sequence.counter.0);
            }
            RelationObject::Key(key) => {
                facts.rows = source.state().rows(key.table.oid).len() as f64;
                facts.attributes = key.all_columns().count();
                facts.options = key.index.map_or(&[], |index| &index.options);
                facts.access_method = if key.enforced { access::BTREE_OID } else { access::UNENFORCED_OID };
            }
            RelationObject::System(relation) => {
                facts.attributes = relation.columns.len();
                facts.rows = -1.0;
            }
        }
        facts
    }
}

fn namespace(source: &Source<'_>, rows: &mut Rows) {
    for schema in source.state().schemas() {
        row!(rows, oid: schema.oid, nspname: &schema.name, nspowner: schema.owner);
    }
}
