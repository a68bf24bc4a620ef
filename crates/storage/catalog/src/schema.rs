//! Schemas: namespaces of tables, views and sequences.

use serde::{Deserialize, Serialize};
use types::Oid;

/// Schema: a namespace of tables, views and sequences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub oid: Oid,
    pub name: String,
    pub owner: Oid,
    pub comment: Option<String>,
}

impl Schema {
    /// Id of `pg_catalog`, as in PostgreSQL.
    pub const PG_CATALOG: Oid = Oid(11);
    /// Id of `public`, as in PostgreSQL.
    pub const PUBLIC: Oid = Oid(2_200);
    /// Id of `information_schema`.
    pub const INFORMATION_SCHEMA: Oid = Oid(13_000);
    /// Id of `sys`, Kiln's system tables.
    pub const SYS: Oid = Oid(13_001);

    /// Prefix of the names of schemas that hold a session's temporary objects.
    pub const TEMPORARY_PREFIX: &str = "pg_temp_";

    /// Returns whether the schema holds the temporary objects of a session.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.name.starts_with(Self::TEMPORARY_PREFIX)
    }

    /// Returns whether the schema holds system tables. These are not stored in the catalog, and nobody can create
    /// objects in the schema or drop it.
    #[must_use]
    pub fn is_system(&self) -> bool {
        [Self::PG_CATALOG, Self::INFORMATION_SCHEMA, Self::SYS].contains(&self.oid)
    }
}
