//! `pg_database`, `pg_tablespace`, `pg_extension` and `pg_conversion`.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RowSource, SYSTEM_OWNER};
use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::catalog;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1262,
        "pg_database",
        "The database.",
        "oid oid, datname name, datdba oid, encoding int4 = 6, datlocprovider char = c, datistemplate bool = f, \
         datallowconn bool = t, datconnlimit int4 = -1, datfrozenxid xid = 0, datminmxid xid = 0, dattablespace oid, \
         datcollate text = C, datctype text = C, daticulocale text, datcollversion text, datacl aclitem[]",
        databases,
    ),
    catalog(
        1213,
        "pg_tablespace",
        "Tablespaces: the one that PostgreSQL calls `pg_default`.",
        "oid oid, spcname name, spcowner oid, spcacl aclitem[], spcoptions text[]",
        tablespaces,
    ),
    catalog(
        3079,
        "pg_extension",
        "Extensions; always empty.",
        "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion text, extconfig oid[], extcondition text[]",
        no_rows,
    ),
    catalog(
        2607,
        "pg_conversion",
        "Encoding conversions; always empty.",
        "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, contoencoding int4, conproc regproc, condefault bool",
        no_rows,
    ),
];

/// OID of the only database: PostgreSQL's OID for the database `postgres`.
pub(crate) const DATABASE_OID: u32 = 5;
const DEFAULT_TABLESPACE_OID: u32 = 1663;

fn databases(source: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, oid: DATABASE_OID, datname: &source.context.database, datdba: SYSTEM_OWNER,
        dattablespace: DEFAULT_TABLESPACE_OID);
}

fn tablespaces(_: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, oid: DEFAULT_TABLESPACE_OID, spcname: "pg_default", spcowner: SYSTEM_OWNER);
}
