//! List of all system tables.

use std::sync::LazyLock;

use super::table_definition::SystemTables;
use super::{information_schema, pg_catalog, sys};

pub(super) static SYSTEM_TABLES: LazyLock<SystemTables> = LazyLock::new(|| {
    let definitions = pg_catalog::definitions().chain(information_schema::definitions()).chain(sys::definitions());
    SystemTables::from_definitions(definitions)
});
