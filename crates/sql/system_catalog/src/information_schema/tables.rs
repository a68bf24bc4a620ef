//! Views of the catalog, schemas, tables, views, character sets and collations.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::TableDefinition;
use super::super::view_definition::view_definition;
use super::{view, yes_or_no};

pub(super) const TABLES: &[TableDefinition] = &[
    view(13_227, "information_schema_catalog_name", "Name of the database.", "catalog_name name", catalog_name),
    view(
        13_382,
        "schemata",
        "Schemas.",
        "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, \
         default_character_set_schema name, default_character_set_name name, sql_path varchar",
        schemata,
    ),
    view(
        13_425,
        "tables",
        "Tables and views.",
        "table_catalog name, table_schema name, table_name name, table_type varchar, self_referencing_column_name name, \
         reference_generation varchar, user_defined_type_catalog name, user_defined_type_schema name, \
         user_defined_type_name name, is_insertable_into char3, is_typed char3 = NO, commit_action varchar",
        tables,
    ),
    view(
        13_483,
        "views",
        "Views with their queries.",
        "table_catalog name, table_schema name, table_name name, view_definition varchar, check_option varchar = NONE, \
         is_updatable char3 = NO, is_insertable_into char3 = NO, is_trigger_updatable char3 = NO, \
         is_trigger_deletable char3 = NO, is_trigger_insertable_into char3 = NO",
        views,
    ),
    view(
        13_478,
        "view_table_usage",
        "Tables that a view reads.",
        "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name name",
        view_table_usage,
    ),
    view(
        13_250,
        "character_sets",
        "The character set of the database.",
        "character_set_catalog name, character_set_schema name, character_set_name name, character_repertoire name, \
         form_of_use name, default_collate_catalog name, default_collate_schema name, default_collate_name name",
        character_sets,
    ),
    view(
        13_265,
        "collations",
        "Collations.",
        "collation_catalog name, collation_schema name = pg_catalog, collation_name name, pad_attribute varchar = 'NO PAD'",
        collations,
    ),
];

fn catalog_name(source: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, catalog_name: &source.context.database);
}

fn schemata(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for schema in source.state().schemas() {
        row!(rows, catalog_name: &source.context.database, schema_name: &schema.name,
            schema_owner: source.role_name(schema.owner));
    }
}

fn tables(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all() {
        if source.context.check_not_foreign_temporary(relation.schema).is_err() {
            continue;
        }
        let table_type = match relation.kind() {
            "r" if source.state().schema(relation.schema).is_some_and(|schema| schema.is_temporary()) => {
                "LOCAL TEMPORARY"
            }
            "r" => "BASE TABLE",
            "f" => "FOREIGN",
            "v" => "VIEW",
            _ => continue,
        };
        row!(rows, table_catalog: &source.context.database, table_schema: source.schema_name(relation.schema),
            table_name: relation.name, table_type: table_type,
            is_insertable_into: yes_or_no(relation.kind() == "r"));
    }
}

fn views(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all().into_iter().filter(|relation| relation.kind() == "v") {
        row!(rows, table_catalog: &source.context.database, table_schema: source.schema_name(relation.schema),
            table_name: relation.name, view_definition: view_definition(source.relations, &relation));
    }
}

fn view_table_usage(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for view in source.state().views() {
        for used in view.depends_on.iter().filter_map(|oid| source.relations.find_by_oid(*oid)) {
            row!(rows, view_catalog: database, view_schema: source.schema_name(view.schema), view_name: &view.name,
                table_catalog: database, table_schema: source.schema_name(used.schema), table_name: used.name);
        }
    }
}

fn character_sets(source: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, character_set_name: "UTF8", character_repertoire: "UCS", form_of_use: "UTF8",
        default_collate_catalog: &source.context.database, default_collate_schema: "pg_catalog",
        default_collate_name: "C");
}

fn collations(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for name in ["default", "C", "POSIX"] {
        row!(rows, collation_catalog: &source.context.database, collation_name: name);
    }
}
