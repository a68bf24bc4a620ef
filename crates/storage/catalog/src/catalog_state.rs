//! State of the catalog as of one commit.

use std::sync::Arc;

use imbl::OrdMap;
use types::{ColumnId, Oid};

use crate::row_clone::SharedShards;
use crate::{ColumnSummary, Database, Definitions, Role, Schema, Sequence, Table, TableRows, TableShards, View};

/// State of the catalog: all definitions and rows. Cloning costs a few pointers, and states share what is unchanged
/// between them: an unchanged object is the same `Arc` in both, and so are the definitions as a whole if none has
/// changed.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogState {
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) rows: OrdMap<Oid, Arc<TableRows>>,
    pub(crate) shared_shards: SharedShards,
}

/// Table, view or sequence; these kinds share one namespace.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    Table(Arc<Table>),
    View(Arc<View>),
    Sequence(Arc<Sequence>),
}

impl Relation {
    /// Returns the relation's id.
    #[must_use]
    pub fn oid(&self) -> Oid {
        match self {
            Self::Table(table) => table.oid,
            Self::View(view) => view.oid,
            Self::Sequence(sequence) => sequence.oid,
        }
    }

    /// Returns the relation's name, without its schema.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Table(table) => &table.name,
            Self::View(view) => &view.name,
            Self::Sequence(sequence) => &sequence.name,
        }
    }

    /// Returns the id of the relation's schema.
    #[must_use]
    pub fn schema(&self) -> Oid {
        match self {
            Self::Table(table) => table.schema,
            Self::View(view) => view.schema,
            Self::Sequence(sequence) => sequence.schema,
        }
    }

    /// Returns the id of the role that owns the relation.
    #[must_use]
    pub fn owner(&self) -> Oid {
        match self {
            Self::Table(table) => table.owner,
            Self::View(view) => view.owner,
            Self::Sequence(sequence) => sequence.owner,
        }
    }

    /// Returns whether the relation has a column with this id.
    #[must_use]
    pub fn has_column(&self, column: ColumnId) -> bool {
        match self {
            Self::Table(table) => table.column(column).is_some(),
            Self::View(view) => view.column(column).is_some(),
            Self::Sequence(_) => (1..=Sequence::COLUMNS).contains(&column.0),
        }
    }
}

impl CatalogState {
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.definitions.database
    }

    #[must_use]
    pub fn schema(&self, oid: Oid) -> Option<&Arc<Schema>> {
        self.definitions.schemas.get(&oid)
    }

    #[must_use]
    pub fn schema_by_name(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schema(*self.definitions.schema_names.get(name)?)
    }

    #[must_use]
    pub fn table(&self, oid: Oid) -> Option<&Arc<Table>> {
        self.definitions.tables.get(&oid)
    }

    #[must_use]
    pub fn view(&self, oid: Oid) -> Option<&Arc<View>> {
        self.definitions.views.get(&oid)
    }

    #[must_use]
    pub fn sequence(&self, oid: Oid) -> Option<&Arc<Sequence>> {
        self.definitions.sequences.get(&oid)
    }

    #[must_use]
    pub fn role(&self, oid: Oid) -> Option<&Arc<Role>> {
        self.definitions.roles.get(&oid)
    }

    #[must_use]
    pub fn role_by_name(&self, name: &str) -> Option<&Arc<Role>> {
        self.role(*self.definitions.role_names.get(name)?)
    }

    /// Returns the table, view or sequence with this name in the schema.
    #[must_use]
    pub fn relation(&self, schema: Oid, name: &str) -> Option<Relation> {
        self.relation_by_oid(*self.definitions.relation_names.get(&schema)?.get(name)?)
    }

    #[must_use]
    pub fn relation_by_oid(&self, oid: Oid) -> Option<Relation> {
        let table = || self.table(oid).map(|table| Relation::Table(Arc::clone(table)));
        let view = || self.view(oid).map(|view| Relation::View(Arc::clone(view)));
        let sequence = || self.sequence(oid).map(|sequence| Relation::Sequence(Arc::clone(sequence)));
        table().or_else(view).or_else(sequence)
    }

    /// Returns the shards of a table; empty if there is no such table.
    #[must_use]
    pub fn shards(&self, table: Oid) -> &TableShards {
        &self.rows(table).shards
    }

    /// Returns the rows of a table; empty if there is no such table.
    #[must_use]
    pub fn rows(&self, table: Oid) -> &Arc<TableRows> {
        self.rows.get(&table).unwrap_or_else(|| TableRows::empty())
    }

    /// Returns the state with other rows for one of its tables.
    #[must_use]
    pub fn with_rows(&self, table: Oid, rows: TableRows) -> Self {
        let mut next = self.clone();
        next.set_rows(table, rows);
        next
    }

    /// Replaces the rows of one of the state's tables.
    pub fn set_rows(&mut self, table: Oid, rows: TableRows) {
        debug_assert!(self.definitions.tables.contains_key(&table), "rows belong to a table");
        self.rows.insert(table, Arc::new(rows));
    }

    /// Returns the statistics of a table's column, including rows of shards older than the column; `None` if there is
    /// no such column.
    #[must_use]
    pub fn column_summary(&self, table: Oid, column: ColumnId) -> Option<ColumnSummary> {
        let column = self.table(table)?.column(column)?;
        Some(self.shards(table).summary(column))
    }

    /// Iterates over the schemas, ordered by id.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.definitions.schemas.values()
    }

    /// Iterates over the tables, ordered by id.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.definitions.tables.values()
    }

    /// Iterates over the views, ordered by id.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.definitions.views.values()
    }

    /// Iterates over the sequences, ordered by id.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.definitions.sequences.values()
    }

    /// Iterates over the sequences that columns of the table own.
    pub fn owned_sequences(&self, table: Oid) -> impl Iterator<Item = &Arc<Sequence>> {
        let may_have = self.definitions.is_referenced(table).then(|| self.sequences());
        may_have.into_iter().flatten().filter(move |sequence| sequence.is_owned_by(table))
    }

    /// Iterates over the roles, ordered by id.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.definitions.roles.values()
    }

    /// Iterates over the tables, views and sequences of a schema, ordered by name.
    pub fn relations(&self, schema: Oid) -> impl Iterator<Item = Relation> + '_ {
        let names = &self.definitions.relation_names;
        names.get(&schema).into_iter().flat_map(OrdMap::values).filter_map(|&oid| self.relation_by_oid(oid))
    }

    pub(crate) fn put_table(&mut self, table: &Arc<Table>) {
        if !self.rows.contains_key(&table.oid) {
            self.rows.insert(table.oid, Arc::default());
        }
        self.definitions_mut().put_table(table);
    }

    pub(crate) fn remove_table(&mut self, table: &Table) {
        self.rows.remove(&table.oid);
        self.definitions_mut().remove_table(table);
    }

    /// Returns the definitions for modification, copied if other states share them.
    pub(crate) fn definitions_mut(&mut self) -> &mut Definitions {
        Arc::make_mut(&mut self.definitions)
    }
}
