//! Schemas: namespaces of tables and views.

use serde::{Deserialize, Serialize};
use types::Oid;

/// A namespace of tables and views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub oid: Oid,
    pub name: String,
    pub owner: Oid,
    pub comment: Option<String>,
}

impl Schema {
    /// The id of `pg_catalog`, as in PostgreSQL.
    pub const PG_CATALOG: Oid = Oid(11);
    /// The id of `public`, as in PostgreSQL.
    pub const PUBLIC: Oid = Oid(2_200);
    /// The id of `information_schema`.
    pub const INFORMATION_SCHEMA: Oid = Oid(13_000);
    /// The id of `sys`, Kiln's own system tables.
    pub const SYS: Oid = Oid(13_001);

    /// What the names of the schemas begin with that hold sessions' temporary objects.
    pub const TEMPORARY_PREFIX: &str = "pg_temp_";

    /// Whether the schema holds the temporary objects of a session.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.name.starts_with(Self::TEMPORARY_PREFIX)
    }

    /// Whether the schema holds system tables, which are not rows of the catalog: nobody creates in it or drops it.
    #[must_use]
    pub fn is_system(&self) -> bool {
        [Self::PG_CATALOG, Self::INFORMATION_SCHEMA, Self::SYS].contains(&self.oid)
    }
}
