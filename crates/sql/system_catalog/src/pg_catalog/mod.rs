//! `pg_catalog`: the catalogs and views of PostgreSQL 15, one file per group of objects.
//!
//! - `definition_constructors.rs`: constructors of definitions,
//! - `class.rs`, `attribute.rs`, `constraint.rs`, `sequence.rs`, `dependency.rs`, `foreign_table.rs`: relations and their
//!   parts,
//! - `pg_type.rs`, `type_io_functions.rs`, `routine.rs`, `builtin_routines.rs`, `access_methods_and_operators.rs`: types, functions and
//!   operators,
//! - `role.rs`, `database.rs`, `settings.rs`, `current_activity.rs`, `table_statistics.rs`: the server and its statistics,
//! - `convenience_views.rs`: views for people; `empty_tables.rs`: catalogs that are always empty.

pub(super) mod access_methods_and_operators;
mod attribute;
mod builtin_routines;
mod class;
mod constraint;
mod convenience_views;
mod current_activity;
mod database;
mod definition_constructors;
mod dependency;
mod empty_tables;
mod foreign_table;
mod pg_type;
mod role;
mod routine;
mod sequence;
mod settings;
mod table_statistics;
mod type_io_functions;

#[cfg(test)]
pub(super) use self::builtin_routines::ROUTINES;
pub(super) use self::builtin_routines::{routine_by_oid, routines_named};
pub(super) use self::definition_constructors::SCHEMA;
pub(super) use self::pg_type::PSEUDO_TYPES;

use super::table_definition::TableDefinition;

/// Returns the definitions of all tables of the schema.
pub(super) fn definitions() -> impl Iterator<Item = &'static TableDefinition> {
    [
        class::TABLES,
        attribute::TABLES,
        constraint::TABLES,
        dependency::TABLES,
        pg_type::TABLES,
        routine::TABLES,
        access_methods_and_operators::TABLES,
        role::TABLES,
        database::TABLES,
        convenience_views::TABLES,
        sequence::TABLES,
        settings::TABLES,
        current_activity::TABLES,
        foreign_table::TABLES,
        table_statistics::TABLES,
        empty_tables::TABLES,
    ]
    .into_iter()
    .flatten()
}
