//! Constructors for the definitions of `pg_catalog`'s tables and views.

use crate::row_builder::RowBuilder;
use crate::row_source::RowSource;
use crate::table_definition::{Columns, TableDefinition};

pub(crate) const SCHEMA: &str = "pg_catalog";

/// Declares a catalog with PostgreSQL's OID.
pub(super) const fn catalog(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static str,
    rows: fn(&RowSource<'_>, &mut RowBuilder),
) -> TableDefinition {
    TableDefinition {
        schema: SCHEMA,
        name,
        description,
        oid,
        kind: "r",
        columns: Columns::WithoutDescriptions(columns),
        rows,
    }
}

/// Declares a view.
pub(super) const fn view(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static str,
    rows: fn(&RowSource<'_>, &mut RowBuilder),
) -> TableDefinition {
    TableDefinition {
        schema: SCHEMA,
        name,
        description,
        oid,
        kind: "v",
        columns: Columns::WithoutDescriptions(columns),
        rows,
    }
}
