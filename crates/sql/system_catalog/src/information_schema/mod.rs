//! `information_schema`: the SQL standard's views of the same facts, with PostgreSQL's extensions.

mod absent;
mod columns;
mod constraints;
mod privileges;
mod routines;
mod sequences;
mod tables;

use super::definition::Definition;
use super::rows::Rows;
use super::source::Source;

/// Every view of the schema.
pub(super) fn definitions() -> impl Iterator<Item = &'static Definition> {
    [
        tables::TABLES,
        columns::TABLES,
        constraints::TABLES,
        privileges::TABLES,
        routines::TABLES,
        sequences::TABLES,
        absent::TABLES,
    ]
    .into_iter()
    .flatten()
}

const fn view(oid: u32, name: &'static str, columns: &'static str, rows: fn(&Source<'_>, &mut Rows)) -> Definition {
    Definition { schema: "information_schema", name, oid, kind: "v", columns, rows }
}

/// The standard's booleans.
fn yes_or_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}
