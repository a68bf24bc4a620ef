//! `pg_catalog`: the catalogs and views of PostgreSQL 15, one file per group of objects.
//!
//! - `constructors.rs`: constructors of definitions,
//! - `class.rs`, `attribute.rs`, `constraint.rs`, `sequence.rs`, `dependency.rs`, `foreign.rs`: relations and their
//!   parts,
//! - `type_.rs`, `type_io_functions.rs`, `routine.rs`, `routine_list.rs`, `signatures.rs`, `access.rs`: types, functions and
//!   operators,
//! - `role.rs`, `database.rs`, `settings.rs`, `activity.rs`, `shard_statistics.rs`: the server and its statistics,
//! - `listing.rs`: views for people; `absent.rs`: catalogs that are always empty.

mod absent;
pub(super) mod access;
mod activity;
mod attribute;
mod class;
mod constraint;
mod constructors;
mod database;
mod dependency;
mod foreign;
mod listing;
mod role;
mod routine;
mod routine_list;
mod sequence;
mod settings;
mod shard_statistics;
mod signatures;
mod type_;
mod type_io_functions;

pub(super) use self::constructors::SCHEMA;
#[cfg(test)]
pub(super) use self::routine::available_routines as listed_routines;
pub(super) use self::routine::description_by_oid;
pub(super) use self::routine_list::{routine_by_oid, routines_named};
pub(super) use self::type_::PSEUDO_TYPES;

use super::definition::TableDefinition;

/// Returns the definitions of all tables of the schema.
pub(super) fn definitions() -> impl Iterator<Item = &'static TableDefinition> {
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
