//! Views for people: `pg_tables`, `pg_views`, `pg_indexes` and similar ones.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RelationObject, RowSource};
use super::super::sql_text::index_definition;
use super::super::table_definition::{Columns, TableDefinition, no_rows};
use super::super::view_definition::view_definition;
use super::definition_constructors::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        12_033,
        "pg_tables",
        "Tables with schema and owner.",
        "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool = f, hasrules bool = f, \
         hastriggers bool = f, rowsecurity bool = f",
        tables,
    ),
    view(
        12_028,
        "pg_views",
        "Views with their queries.",
        "schemaname name, viewname name, viewowner name, definition text",
        views,
    ),
    view(
        12_043,
        "pg_indexes",
        "Indexes with their definitions.",
        "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
        indexes,
    ),
    view(
        12_038,
        "pg_matviews",
        "Materialized views; always empty.",
        "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated bool, definition text",
        no_rows,
    ),
    view(
        12_023,
        "pg_rules",
        "Rewrite rules other than those of views; always empty.",
        "schemaname name, tablename name, rulename name, definition text",
        no_rows,
    ),
    view(
        12_018,
        "pg_policies",
        "Row-level security policies; always empty.",
        "schemaname name, tablename name, policyname name, permissive text, roles name[], cmd text, qual text, with_check text",
        no_rows,
    ),
    set_returning_function(
        1686,
        "pg_get_keywords",
        "Keywords of the grammar.",
        "word text, catcode char, barelabel bool = t, catdesc text, baredesc text",
        keywords,
    ),
];

/// Declares a set-returning function without arguments, as a table that `pg_class` does not list.
const fn set_returning_function(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static str,
    rows: fn(&RowSource<'_>, &mut RowBuilder),
) -> TableDefinition {
    TableDefinition {
        schema: super::definition_constructors::SCHEMA,
        name,
        description,
        oid,
        kind: "",
        columns: Columns::WithoutDescriptions(columns),
        rows,
    }
}

fn keywords(_: &RowSource<'_>, rows: &mut RowBuilder) {
    for (word, code, description) in syntax::keyword::all_keywords() {
        row!(rows, word: word, catcode: code, catdesc: description);
    }
}

fn tables(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all().into_iter().filter(|relation| relation.kind() == "r") {
        let has_keys = matches!(relation.object, RelationObject::Table(table) if super::super::row_source::keys(table).next().is_some());
        row!(rows, schemaname: source.schema_name(relation.schema), tablename: relation.name,
            tableowner: source.role_name(relation.owner), hasindexes: has_keys);
    }
}

fn views(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all().into_iter().filter(|relation| relation.kind() == "v") {
        row!(rows, schemaname: source.schema_name(relation.schema), viewname: relation.name,
            viewowner: source.role_name(relation.owner), definition: view_definition(source.relations, &relation));
    }
}

fn indexes(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all() {
        if let RelationObject::KeyOrIndex(key) = relation.object {
            row!(rows, schemaname: source.schema_name(relation.schema), tablename: &key.table.name,
                indexname: relation.name, indexdef: index_definition(source.state(), key, 0));
        }
    }
}
