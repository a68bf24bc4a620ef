//! `information_schema`: the SQL standard's views of the catalog, with PostgreSQL's extensions.
//!
//! - `tables.rs`, `columns.rs`, `constraints.rs`, `sequences.rs`, `routines.rs`: views of objects,
//! - `privileges.rs`: views of roles and privileges,
//! - `empty_tables.rs`: views that are always empty.

mod columns;
mod constraints;
mod empty_tables;
mod privileges;
mod routines;
mod sequences;
mod tables;

use super::row_builder::RowBuilder;
use super::row_source::RowSource;
use super::table_definition::{Columns, TableDefinition};

/// Returns the definitions of all views of the schema.
pub(super) fn definitions() -> impl Iterator<Item = &'static TableDefinition> {
    [
        tables::TABLES,
        columns::TABLES,
        constraints::TABLES,
        privileges::TABLES,
        routines::TABLES,
        sequences::TABLES,
        empty_tables::TABLES,
    ]
    .into_iter()
    .flatten()
}

const fn view(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static str,
    rows: fn(&RowSource<'_>, &mut RowBuilder),
) -> TableDefinition {
    TableDefinition {
        schema: "information_schema",
        name,
        description,
        oid,
        kind: "v",
        columns: Columns::WithoutDescriptions(columns),
        rows,
    }
}

/// Converts a boolean to the standard's YES or NO.
fn yes_or_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}
