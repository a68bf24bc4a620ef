//! Views of roles and privileges: an owner has all privileges on its objects, and nothing is granted to others.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RelationObject, RowSource};
use super::super::table_definition::{TableDefinition, no_rows};
use super::view;

const TABLE_GRANT_COLUMNS: &str = "grantor name, grantee name, table_catalog name, table_schema name, table_name name, \
     privilege_type varchar, is_grantable char3 = YES, with_hierarchy char3 = NO";
const COLUMN_GRANT_COLUMNS: &str = "grantor name, grantee name, table_catalog name, table_schema name, table_name name, \
     column_name name, privilege_type varchar, is_grantable char3 = YES";
const USAGE_GRANT_COLUMNS: &str = "grantor name, grantee name, object_catalog name, object_schema name, object_name name, \
     object_type varchar, privilege_type varchar, is_grantable char3";

pub(super) const TABLES: &[TableDefinition] = &[
    view(13_325, "enabled_roles", "The current role.", "role_name name", enabled_roles),
    view(
        13_236,
        "applicable_roles",
        "Memberships of the current role; always empty.",
        "grantee name, role_name name, is_grantable char3",
        no_rows,
    ),
    view(
        13_241,
        "administrable_role_authorizations",
        "Memberships that the current role may grant; always empty.",
        "grantee name, role_name name, is_grantable char3",
        no_rows,
    ),
    view(
        13_416,
        "table_privileges",
        "Privileges of owners on their tables and views.",
        TABLE_GRANT_COLUMNS,
        table_privileges,
    ),
    view(
        13_421,
        "role_table_grants",
        "Privileges of owners on their tables and views.",
        TABLE_GRANT_COLUMNS,
        table_privileges,
    ),
    view(
        13_285,
        "column_privileges",
        "Privileges of owners on the columns of their tables and views.",
        COLUMN_GRANT_COLUMNS,
        column_privileges,
    ),
    view(
        13_344,
        "role_column_grants",
        "Privileges of owners on the columns of their tables and views.",
        COLUMN_GRANT_COLUMNS,
        column_privileges,
    ),
    view(13_454, "usage_privileges", "USAGE privileges; always empty.", USAGE_GRANT_COLUMNS, no_rows),
    view(13_459, "role_usage_grants", "USAGE privileges; always empty.", USAGE_GRANT_COLUMNS, no_rows),
];

/// Privileges of an owner on a table or column.
const TABLE_PRIVILEGES: [&str; 4] = ["INSERT", "SELECT", "TRUNCATE", "REFERENCES"];
const COLUMN_PRIVILEGES: [&str; 3] = ["INSERT", "SELECT", "REFERENCES"];

fn enabled_roles(source: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, role_name: &source.context.role.name);
}

fn table_privileges(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all() {
        let owner = source.role_name(relation.owner);
        let privileges: &[&str] = match relation.object {
            RelationObject::Table(table) if table.external.is_some() => &["SELECT"],
            RelationObject::Table(_) => &TABLE_PRIVILEGES,
            RelationObject::View(_) | RelationObject::System(_) => &["SELECT"],
            RelationObject::Sequence(_) | RelationObject::KeyOrIndex(_) => &[],
        };
        for privilege in privileges {
            row!(rows, grantor: &owner, grantee: &owner, table_catalog: &source.context.database,
                table_schema: source.schema_name(relation.schema), table_name: relation.name, privilege_type: *privilege);
        }
    }
}

fn column_privileges(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all() {
        let owner = source.role_name(relation.owner);
        let privileges: &[&str] = match relation.object {
            RelationObject::Table(table) if table.external.is_some() => &["SELECT"],
            RelationObject::Table(_) => &COLUMN_PRIVILEGES,
            RelationObject::View(_) | RelationObject::System(_) => &["SELECT"],
            RelationObject::Sequence(_) | RelationObject::KeyOrIndex(_) => &[],
        };
        for attribute in relation.attributes() {
            for privilege in privileges {
                row!(rows, grantor: &owner, grantee: &owner, table_catalog: &source.context.database,
                    table_schema: source.schema_name(relation.schema), table_name: relation.name,
                    column_name: attribute.name, privilege_type: *privilege);
            }
        }
    }
}
