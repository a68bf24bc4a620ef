//! `pg_catalog`: PostgreSQL 15's catalogs and views, one file per group of things they describe.

mod absent;
pub(super) mod access;
mod activity;
mod attribute;
mod class;
mod constraint;
mod database;
mod dependency;
mod foreign;
mod listing;
mod role;
mod routine;
mod sequence;
mod settings;
mod shard_statistics;
mod signatures;
mod type_;
mod type_forms;

pub(super) use routine::{routine_by_oid, routine_named};
pub(super) use type_::PSEUDO_TYPES;

use super::definition::Definition;
use super::rows::Rows;
use super::source::Source;

pub(super) const SCHEMA: &str = "pg_catalog";

/// Every table of the schema.
pub(super) fn definitions() -> impl Iterator<Item = &'static Definition> {
    [
        class::TABLES,
        attribute::TABLES,
        constraint::TABLES,
        dependency::TABLES,
        type_::TABLES,
        routine::TABLES,
        access::TABLES,
        role::TABLES,
        database::TABLES,
        listing::TABLES,
        sequence::TABLES,
        settings::TABLES,
        activity::TABLES,
        foreign::TABLES,
        shard_statistics::TABLES,
        absent::TABLES,
    ]
    .into_iter()
    .flatten()
}

/// A base catalog with PostgreSQL's number.
const fn catalog(oid: u32, name: &'static str, columns: &'static str, rows: fn(&Source<'_>, &mut Rows)) -> Definition {
    Definition { schema: SCHEMA, name, oid, kind: "r", columns, rows }
}

/// A view over catalogs.
const fn view(oid: u32, name: &'static str, columns: &'static str, rows: fn(&Source<'_>, &mut Rows)) -> Definition {
    Definition { schema: SCHEMA, name, oid, kind: "v", columns, rows }
}
