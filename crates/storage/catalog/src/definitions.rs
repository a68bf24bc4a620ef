//! Definitions of all objects, without rows.

use std::sync::Arc;

use imbl::OrdMap;
use types::Oid;

use crate::{CatalogState, ConstraintKind, Database, Role, Schema, Sequence, Table, View};

/// Definitions of all objects, with indexes by name. They keep no row in memory.
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
    /// Number of references to a table, view or sequence from other definitions. Most objects have none; without this
    /// count, dropping many objects would search all definitions each time, which is quadratic.
    reference_counts: OrdMap<Oid, usize>,
    /// Number of external tables.
    external_table_count: usize,
}

impl CatalogState {
    /// Returns the definitions. If two states have the same `Arc`, no definition changed between them, and a plan for
    /// one is valid for the other. The `Arc`s may differ without a difference if a change was reverted.
    #[must_use]
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// Returns whether some table is external.
    #[must_use]
    pub fn has_external_tables(&self) -> bool {
        0 < self.definitions.external_table_count
    }

    /// Returns the same definitions with empty tables.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self { rows: OrdMap::new(), ..self.clone() }
    }
}

impl Definitions {
    /// Creates definitions of only the database.
    pub(crate) fn with_database(database: Arc<Database>) -> Self {
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
            reference_counts: OrdMap::new(),
            external_table_count: 0,
        }
    }

    /// Returns whether another table, view or sequence references the object in its definition.
    pub(crate) fn is_referenced(&self, oid: Oid) -> bool {
        self.reference_counts.contains_key(&oid)
    }

    fn add_references(&mut self, to: impl Iterator<Item = Oid>) {
        for oid in to {
            *self.reference_counts.entry(oid).or_insert(0) += 1;
        }
    }

    fn remove_references(&mut self, to: impl Iterator<Item = Oid>) {
        for oid in to {
            match self.reference_counts.get_mut(&oid) {
                Some(count) if 1 < *count => *count -= 1,
                _ => drop(self.reference_counts.remove(&oid)),
            }
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
        self.add_references(referenced_by_table(table));
        self.external_table_count += usize::from(table.external.is_some());
        if let Some(old) = self.tables.insert(table.oid, Arc::clone(table)) {
            self.external_table_count -= usize::from(old.external.is_some());
            self.remove_references(referenced_by_table(&old));
            self.remove_relation_name(old.schema, &old.name);
        }
        self.put_relation_name(table.schema, &table.name, table.oid);
    }

    pub(crate) fn remove_table(&mut self, table: &Table) {
        if let Some(old) = self.tables.remove(&table.oid) {
            self.external_table_count -= usize::from(old.external.is_some());
            self.remove_references(referenced_by_table(&old));
        }
        self.remove_relation_name(table.schema, &table.name);
    }

    pub(crate) fn put_view(&mut self, view: &Arc<View>) {
        self.add_references(view.depends_on.iter().copied());
        if let Some(old) = self.views.insert(view.oid, Arc::clone(view)) {
            self.remove_references(old.depends_on.iter().copied());
            self.remove_relation_name(old.schema, &old.name);
        }
        self.put_relation_name(view.schema, &view.name, view.oid);
    }

    pub(crate) fn remove_view(&mut self, view: &View) {
        if let Some(old) = self.views.remove(&view.oid) {
            self.remove_references(old.depends_on.iter().copied());
        }
        self.remove_relation_name(view.schema, &view.name);
    }

    pub(crate) fn put_sequence(&mut self, sequence: &Arc<Sequence>) {
        self.add_references(sequence.owned_by.iter().map(|owner| owner.table));
        if let Some(old) = self.sequences.insert(sequence.oid, Arc::clone(sequence)) {
            self.remove_references(old.owned_by.iter().map(|owner| owner.table));
            self.remove_relation_name(old.schema, &old.name);
        }
        self.put_relation_name(sequence.schema, &sequence.name, sequence.oid);
    }

    pub(crate) fn remove_sequence(&mut self, sequence: &Sequence) {
        if let Some(old) = self.sequences.remove(&sequence.oid) {
            self.remove_references(old.owned_by.iter().map(|owner| owner.table));
        }
        self.remove_relation_name(sequence.schema, &sequence.name);
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

    fn put_relation_name(&mut self, schema: Oid, name: &str, oid: Oid) {
        self.relation_names.entry(schema).or_default().insert(name.to_owned(), oid);
    }

    fn remove_relation_name(&mut self, schema: Oid, name: &str) {
        if let Some(names) = self.relation_names.get_mut(&schema) {
            names.remove(name);
            if names.is_empty() {
                self.relation_names.remove(&schema);
            }
        }
    }
}

/// Iterates over the objects that a table's definition references: tables of its foreign keys, sequences of its
/// defaults.
fn referenced_by_table(table: &Table) -> impl Iterator<Item = Oid> + '_ {
    let tables = table.constraints.iter().filter_map(|constraint| match &constraint.kind {
        ConstraintKind::ForeignKey { references, .. } if *references != table.oid => Some(*references),
        _ => None,
    });
    tables.chain(table.columns.iter().flat_map(|column| column.sequences.iter().copied()))
}
