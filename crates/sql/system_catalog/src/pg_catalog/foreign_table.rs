//! `pg_foreign_table` and related catalogs: external tables are foreign tables of a single server, `files`.

use super::super::row_builder::{Cell, RowBuilder, row};
use super::super::row_source::{RowSource, SYSTEM_OWNER};
use super::super::table_definition::TableDefinition;
use super::definition_constructors::catalog;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        2328,
        "pg_foreign_data_wrapper",
        "Foreign-data wrappers: the one behind external tables.",
        "oid oid, fdwname name, fdwowner oid, fdwhandler oid = 0, fdwvalidator oid = 0, fdwacl aclitem[], fdwoptions text[]",
        wrappers,
    ),
    catalog(
        1417,
        "pg_foreign_server",
        "Foreign servers: the one behind external tables.",
        "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl aclitem[], srvoptions text[]",
        servers,
    ),
    catalog(3118, "pg_foreign_table", "External tables.", "ftrelid oid, ftserver oid, ftoptions text[]", tables),
];

const WRAPPER_OID: u32 = 15_902;
const SERVER_OID: u32 = 15_903;

/// Whether there are external tables; without any, the catalogs are empty, as in a new PostgreSQL cluster.
fn has_external_tables(source: &RowSource<'_>) -> bool {
    source.state().tables().any(|table| table.external.is_some())
}

fn wrappers(source: &RowSource<'_>, rows: &mut RowBuilder) {
    if has_external_tables(source) {
        row!(rows, oid: WRAPPER_OID, fdwname: "parquet", fdwowner: SYSTEM_OWNER);
    }
}

fn servers(source: &RowSource<'_>, rows: &mut RowBuilder) {
    if has_external_tables(source) {
        row!(rows, oid: SERVER_OID, srvname: "files", srvowner: SYSTEM_OWNER, srvfdw: WRAPPER_OID);
    }
}

fn tables(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for table in source.state().tables() {
        let Some(external) = &table.external else { continue };
        let options = Cell::List(vec![Cell::from(format!("location={}", external.location))]);
        row!(rows, ftrelid: table.oid, ftserver: SERVER_OID, ftoptions: options);
    }
}
