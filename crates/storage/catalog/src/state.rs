//! The catalog at one moment.

use std::sync::Arc;

use imbl::OrdMap;
use types::{ColumnId, Oid};

use crate::clone::Shared;
use crate::{ColumnSummary, Database, Definitions, Role, Schema, Sequence, Table, TableRows, TableShards, View};

/// Everything that exists at one moment. Cloning costs a few pointers, and states share what they have in common: an object
/// that two states have unchanged is the same `Arc` in both, and so are all definitions where none has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogState {
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) rows: OrdMap<Oid, Arc<TableRows>>,
    pub(crate) shared: Shared,
}

/// What the name of a relation stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    Table(Arc<Table>),
    View(Arc<View>),
    Sequence(Arc<Sequence>),
}

impl Relation {
    /// The relation's id.
    #[must_use]
    pub fn oid(&self) -> Oid {
        match self {
            Self::Table(table) => table.oid,
            Self::View(view) => view.oid,
            Self::Sequence(sequence) => sequence.oid,
        }
    }

    /// The relation's name, without its schema.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Table(table) => &table.name,
            Self::View(view) => &view.name,
            Self::Sequence(sequence) => &sequence.name,
        }
    }

    /// The id of the schema that the relation is in.
    #[must_use]
    pub fn schema(&self) -> Oid {
        match self {
            Self::Table(table) => table.schema,
            Self::View(view) => view.schema,
            Self::Sequence(sequence) => sequence.schema,
        }
    }

    /// The id of the role that owns the relation.
    #[must_use]
    pub fn owner(&self) -> Oid {
        match self {
            Self::Table(table) => table.owner,
            Self::View(view) => view.owner,
            Self::Sequence(sequence) => sequence.owner,
        }
    }

    /// Whether the relation has a column with this id.
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

    /// The table, view or sequence called `name` in the schema.
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

    /// The shards of a table; none for an id that is no table's.
    #[must_use]
    pub fn shards(&self, table: Oid) -> &TableShards {
        &self.rows(table).shards
    }

    /// The rows of a table; none for an id that is no table's.
    #[must_use]
    pub fn rows(&self, table: Oid) -> &Arc<TableRows> {
        self.rows.get(&table).unwrap_or_else(|| TableRows::none())
    }

    /// The state with other rows of a table, which it has.
    #[must_use]
    pub fn with_rows(&self, table: Oid, rows: TableRows) -> Self {
        let mut next = self.clone();
        next.set_rows(table, rows);
        next
    }

    /// Sets the rows of a table that the state has.
    pub fn set_rows(&mut self, table: Oid, rows: TableRows) {
        debug_assert!(self.definitions.tables.contains_key(&table), "rows belong to a table");
        self.rows.insert(table, Arc::new(rows));
    }

    /// What is known about a table's column, rows of shards older than the column included; `None` if there is no such column.
    #[must_use]
    pub fn column_summary(&self, table: Oid, column: ColumnId) -> Option<ColumnSummary> {
        let column = self.table(table)?.column(column)?;
        Some(self.shards(table).summary(column))
    }

    /// In the order of their ids.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.definitions.schemas.values()
    }

    /// In the order of their ids.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.definitions.tables.values()
    }

    /// In the order of their ids.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.definitions.views.values()
    }

    /// In the order of their ids.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.definitions.sequences.values()
    }

    /// The sequences that go with columns of the table.
    pub fn sequences_of(&self, table: Oid) -> impl Iterator<Item = &Arc<Sequence>> {
        let may_have = self.definitions.is_referenced(table).then(|| self.sequences());
        may_have.into_iter().flatten().filter(move |sequence| sequence.is_owned_by(table))
    }

    /// In the order of their ids.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.definitions.roles.values()
    }

    /// The tables, views and sequences of a schema, in the order of their names.
    pub fn relations(&self, schema: Oid) -> impl Iterator<Item = Relation> + '_ {
        let names = &self.definitions.relation_names;
        names.get(&schema).into_iter().flat_map(OrdMap::values).filter_map(|&oid| self.relation_by_oid(oid))
    }

    pub(crate) fn put_table(&mut self, table: &Arc<Table>) {
        if !self.rows.contains_key(&table.oid) {
            self.rows.insert(table.oid, Arc::default());
        }
        self.define().put_table(table);
    }

    pub(crate) fn remove_table(&mut self, table: &Table) {
        self.rows.remove(&table.oid);
        self.define().remove_table(table);
    }

    /// The definitions, to be changed: no longer those of other states.
    pub(crate) fn define(&mut self) -> &mut Definitions {
        Arc::make_mut(&mut self.definitions)
    }
}
