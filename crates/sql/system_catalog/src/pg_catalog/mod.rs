//! `pg_catalog`: PostgreSQL 15's catalogs and views, one file per group of things they describe.

mod absent;
pub(super) mod access;
mod activity;
mod attribute;
mod class;
mod constraint;
mod database;
mod declared;
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
mod type_forms;

pub(super) use self::declared::SCHEMA;
pub(super) use self::routine_list::{routine_by_oid, routine_named};
pub(super) use self::type_::PSEUDO_TYPES;

use super::definition::Definition;

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
