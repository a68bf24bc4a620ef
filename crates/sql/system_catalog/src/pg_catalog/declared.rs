//! The two kinds of relations that `pg_catalog` has, as its files declare them.

use crate::definition::Definition;
use crate::rows::Rows;
use crate::source::Source;

pub(crate) const SCHEMA: &str = "pg_catalog";

/// A base catalog with PostgreSQL's number.
pub(super) const fn catalog(
    oid: u32,
    name: &'static str,
    columns: &'static str,
    rows: fn(&Source<'_>, &mut Rows),
) -> Definition {
    Definition { schema: SCHEMA, name, oid, kind: "r", columns, rows }
}

/// A view over catalogs.
pub(super) const fn view(
    oid: u32,
    name: &'static str,
    columns: &'static str,
    rows: fn(&Source<'_>, &mut Rows),
) -> Definition {
    Definition { schema: SCHEMA, name, oid, kind: "v", columns, rows }
}
