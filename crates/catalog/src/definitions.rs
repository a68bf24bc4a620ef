//! What exists, without the rows.

use std::sync::Arc;

use imbl::OrdMap;
use types::Oid;

use crate::{CatalogState, Database, Role, Schema, Table, View};

/// The definitions of a catalog, kept to tell whether they are still the same. Keeps no row alive.
#[derive(Debug, Clone)]
pub struct Definitions {
    database: Arc<Database>,
    schemas: OrdMap<Oid, Arc<Schema>>,
    tables: OrdMap<Oid, Arc<Table>>,
    views: OrdMap<Oid, Arc<View>>,
    roles: OrdMap<Oid, Arc<Role>>,
    relation_names: OrdMap<Oid, OrdMap<String, Oid>>,
}

impl Definitions {
    /// Whether nothing was defined, changed or dropped between the two: what was planned by the one still means the same in the other.
    /// May be false for a change that was taken back.
    #[must_use]
    pub fn are_those_of(&self, state: &CatalogState) -> bool {
        Arc::ptr_eq(&self.database, &state.database)
            && self.schemas.ptr_eq(&state.schemas)
            && self.tables.ptr_eq(&state.tables)
            && self.views.ptr_eq(&state.views)
            && self.roles.ptr_eq(&state.roles)
            && self.relation_names.ptr_eq(&state.relation_names)
    }
}

impl CatalogState {
    /// See [`Definitions`].
    #[must_use]
    pub fn definitions(&self) -> Definitions {
        Definitions {
            database: Arc::clone(&self.database),
            schemas: self.schemas.clone(),
            tables: self.tables.clone(),
            views: self.views.clone(),
            roles: self.roles.clone(),
            relation_names: self.relation_names.clone(),
        }
    }

    /// The same definitions with no row in any table.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self { rows: OrdMap::new(), ..self.clone() }
    }
}
