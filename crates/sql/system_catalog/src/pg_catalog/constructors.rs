//! Constructors for the definitions of `pg_catalog`'s tables and views.

use crate::definition::{Columns, TableDefinition};
use crate::rows::Rows;
use crate::source::Source;

pub(crate) const SCHEMA: &str = "pg_catalog";

/// Declares a catalog with PostgreSQL's OID.
pub(super) const fn catalog(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static str,
    rows: fn(&Source<'_>, &mut Rows),
) -> TableDefinition {
    TableDefinition { schema: SCHEMA, name, description, oid, kind: "r", columns: Columns::Listed(columns), rows }
}

/// Declares a view.
pub(super) const fn view(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static str,
    rows: fn(&Source<'_>, &mut Rows),
) -> TableDefinition {
    TableDefinition { schema: SCHEMA, name, description, oid, kind: "v", columns: Columns::Listed(columns), rows }
}
