//! Catalog of a new warehouse.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use types::Oid;

use crate::{CatalogState, Database, Definitions, Role, Schema};

impl CatalogState {
    /// Creates a catalog with the schemas `pg_catalog`, `information_schema`, `public` and `sys`, the role `kiln`,
    /// which owns them, and the database `kiln`.
    #[must_use]
    pub fn new_warehouse() -> Self {
        let mut state = Self::with_database(Arc::new(Database {
            oid: Database::KILN,
            name: "kiln".to_owned(),
            owner: Role::BOOTSTRAP,
            settings: BTreeMap::new(),
            comment: None,
        }));
        state.definitions_mut().put_role(&Arc::new(Role {
            oid: Role::BOOTSTRAP,
            name: "kiln".to_owned(),
            superuser: true,
            login: true,
            create_role: true,
            create_db: true,
            inherit: true,
            connection_limit: -1,
            valid_until: None,
            scram: None,
            settings: BTreeMap::new(),
            comment: None,
        }));
        for (oid, name, comment) in INITIAL_SCHEMAS {
            state.definitions_mut().put_schema(&Arc::new(Schema {
                oid,
                name: name.to_owned(),
                owner: Role::BOOTSTRAP,
                comment: comment.map(str::to_owned),
            }));
        }
        state
    }

    /// Creates a state with only the database, to which other objects are then added.
    pub(crate) fn with_database(database: Arc<Database>) -> Self {
        let definitions = Arc::new(Definitions::with_database(database));
        Self { definitions, rows: OrdMap::new(), shared_shards: crate::row_clone::SharedShards::default() }
    }
}

const INITIAL_SCHEMAS: [(Oid, &str, Option<&str>); 4] = [
    (Schema::PG_CATALOG, "pg_catalog", Some("system catalog schema")),
    (Schema::INFORMATION_SCHEMA, "information_schema", None),
    (Schema::PUBLIC, "public", Some("standard public schema")),
    (Schema::SYS, "sys", Some("what runs and what is stored")),
];
