//! What exists, without the rows.

use std::sync::Arc;

use imbl::OrdMap;
use types::Oid;

use crate::{CatalogState, Database, Role, Schema, Sequence, Table, View};

/// The definitions of a catalog, with the ways to find them. Keeps no row alive.
#[derive(Debug, Clone, PartialEq)]
pub struct Definitions {
    pub(crate) database: Arc<Database>,
    pub(crate) schemas: OrdMap<Oid, Arc<Schema>>,
    pub(crate) tables: OrdMap<Oid, Arc<Table>>,
    pub(crate) views: OrdMap<Oid, Arc<View>>,
    pub(crate) sequences: OrdMap<Oid, Arc<Sequence>>,
    pub(crate) roles: OrdMap<Oid, Arc<Role>>,
    pub(crate) schema_names: OrdMap<String, Oid>,
    /// Tables, views and sequences by schema and name: they share one namespace.
    pub(crate) relation_names: OrdMap<Oid, OrdMap<String, Oid>>,
    pub(crate) role_names: OrdMap<String, Oid>,
}

impl CatalogState {
    /// Everything but the rows. Two states have the same `Arc` where nothing was defined, changed or dropped between them: what was
    /// planned by the one still means the same in the other. They may differ for a change that was taken back.
    #[must_use]
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// The same definitions with no row in any table.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self { rows: OrdMap::new(), ..self.clone() }
    }
}

impl Definitions {
    /// Nothing but the database.
    pub(crate) fn of_database(database: Arc<Database>) -> Self {
        Self {
            database,
            schemas: OrdMap::new(),
            tables: OrdMap::new(),
            views: OrdMap::new(),
            sequences: OrdMap::new(),
            roles: OrdMap::new(),
            schema_names: OrdMap::new(),
            relation_names: OrdMap::new(),
            role_names: OrdMap::new(),
        }
    }

    pub(crate) fn put_schema(&mut self, schema: &Arc<Schema>) {
        if let Some(old) = self.schemas.insert(schema.oid, Arc::clone(schema)) {
            self.schema_names.remove(&old.name);
        }
        self.schema_names.insert(schema.name.clone(), schema.oid);
    }

    pub(crate) fn remove_schema(&mut self, schema: &Schema) {
        self.schemas.remove(&schema.oid);
        self.schema_names.remove(&schema.name);
        self.relation_names.remove(&schema.oid);
    }

    pub(crate) fn put_table(&mut self, table: &Arc<Table>) {
        if let Some(old) = self.tables.insert(table.oid, Arc::clone(table)) {
            self.remove_name(old.schema, &old.name);
        }
        self.put_name(table.schema, &table.name, table.oid);
    }

    pub(crate) fn remove_table(&mut self, table: &Table) {
        self.tables.remove(&table.oid);
        self.remove_name(table.schema, &table.name);
    }

    pub(crate) fn put_view(&mut self, view: &Arc<View>) {
        if let Some(old) = self.views.insert(view.oid, Arc::clone(view)) {
            self.remove_name(old.schema, &old.name);
        }
        self.put_name(view.schema, &view.name, view.oid);
    }

    pub(crate) fn remove_view(&mut self, view: &View) {
        self.views.remove(&view.oid);
        self.remove_name(view.schema, &view.name);
    }

    pub(crate) fn put_sequence(&mut self, sequence: &Arc<Sequence>) {
        if let Some(old) = self.sequences.insert(sequence.oid, Arc::clone(sequence)) {
            self.remove_name(old.schema, &old.name);
        }
        self.put_name(sequence.schema, &sequence.name, sequence.oid);
    }

    pub(crate) fn remove_sequence(&mut self, sequence: &Sequence) {
        self.sequences.remove(&sequence.oid);
        self.remove_name(sequence.schema, &sequence.name);
    }

    pub(crate) fn put_role(&mut self, role: &Arc<Role>) {
        if let Some(old) = self.roles.insert(role.oid, Arc::clone(role)) {
            self.role_names.remove(&old.name);
        }
        self.role_names.insert(role.name.clone(), role.oid);
    }

    pub(crate) fn remove_role(&mut self, role: &Role) {
        self.roles.remove(&role.oid);
        self.role_names.remove(&role.name);
    }

    fn put_name(&mut self, schema: Oid, name: &str, oid: Oid) {
        self.relation_names.entry(schema).or_default().insert(name.to_owned(), oid);
    }

    fn remove_name(&mut self, schema: Oid, name: &str) {
        if let Some(names) = self.relation_names.get_mut(&schema) {
            names.remove(name);
            if names.is_empty() {
                self.relation_names.remove(&schema);
            }
        }
    }
}
