//! Input of system tables and functions: the catalog snapshot of a statement and its context, in the terms of
//! `pg_class` and `pg_attribute`.

use catalog::{CatalogState, Column, Constraint, ConstraintKind, Identity, Index, KeyOrder, Sequence, Table, View};
use datafusion::scalar::ScalarValue;
use session_context::StatementContext;
use types::{ColumnId, Oid, SqlType};

use super::table_definition::{ParsedTableDefinition, SystemTables};
use crate::sequence_table::SEQUENCE_COLUMNS;

/// Owner of system objects: the bootstrap role.
pub(super) const SYSTEM_OWNER: Oid = Oid(10);

/// Data that the rows of a system table are computed from, as one statement sees it.
pub(super) struct RowSource<'a> {
    pub(super) context: &'a StatementContext,
    pub(super) relations: VisibleRelations<'a>,
    pub(super) restriction: RowRestriction,
}

/// Relations that a statement sees: those of the catalog, and the system tables.
#[derive(Clone, Copy)]
pub(super) struct VisibleRelations<'a> {
    pub(super) context: &'a StatementContext,
    pub(super) system_tables: &'static SystemTables,
}

/// Restriction of a query that lets a table compute fewer rows. More rows than requested are correct too.
#[derive(Debug, Clone, Default)]
pub(super) struct RowRestriction {
    /// Only value of the table's first column that is requested.
    pub(super) first_column: Option<ScalarValue>,
}

impl RowRestriction {
    /// Returns the only requested value of a first column of OIDs.
    pub(super) fn oid(&self) -> Option<Oid> {
        match self.first_column {
            Some(ScalarValue::UInt32(Some(number))) => Some(Oid(number)),
            Some(ScalarValue::Int64(Some(number))) => u32::try_from(number).ok().map(Oid),
            _ => None,
        }
    }

    /// Returns the only requested value of a first column of texts.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.first_column {
            Some(ScalarValue::Utf8View(Some(text)) | ScalarValue::Utf8(Some(text))) => Some(text),
            _ => None,
        }
    }
}

/// Row of `pg_class`, for any kind of relation.
pub(super) struct Relation<'a> {
    pub(super) oid: Oid,
    pub(super) name: &'a str,
    pub(super) schema: Oid,
    pub(super) owner: Oid,
    pub(super) object: RelationObject<'a>,
}

/// Kind of a relation, with its catalog object.
#[derive(Clone, Copy)]
pub(super) enum RelationObject<'a> {
    Table(&'a Table),
    View(&'a View),
    Sequence(&'a Sequence),
    /// Key constraint or index; PostgreSQL would have created an index for the constraint.
    KeyOrIndex(KeyOrIndex<'a>),
    System(&'static ParsedTableDefinition),
}

/// PRIMARY KEY or UNIQUE constraint, or index, with its table.
#[derive(Clone, Copy)]
pub(super) struct KeyOrIndex<'a> {
    pub(super) table: &'a Table,
    pub(super) oid: Oid,
    pub(super) name: &'a str,
    pub(super) columns: &'a [ColumnId],
    /// The index, if CREATE INDEX created it.
    pub(super) index: Option<&'a Index>,
    pub(super) primary: bool,
    pub(super) unique: bool,
    /// Whether the key is enforced, which means that an index exists for it.
    pub(super) enforced: bool,
}

/// Row of `pg_attribute`.
pub(super) struct Attribute<'a> {
    pub(super) number: i32,
    pub(super) name: &'a str,
    pub(super) sql_type: SqlType,
    pub(super) not_null: bool,
    /// DEFAULT as the catalog stores it: sequences by OID.
    pub(super) default: Option<&'a str>,
    pub(super) identity: Option<Identity>,
    pub(super) comment: Option<&'a str>,
}

impl<'a> RowSource<'a> {
    pub(super) fn new(relations: VisibleRelations<'a>, wanted: RowRestriction) -> Self {
        Self { context: relations.context, relations, restriction: wanted }
    }

    pub(super) fn state(&self) -> &'a CatalogState {
        &self.context.snapshot
    }

    /// Returns the name of a schema; empty for an unknown OID.
    pub(super) fn schema_name(&self, schema: Oid) -> &'a str {
        schema_name(self.state(), schema)
    }

    /// Returns the name of a role, as `pg_get_userbyid` does.
    pub(super) fn role_name(&self, role: Oid) -> String {
        role_name(self.state(), role)
    }
}

impl<'a> VisibleRelations<'a> {
    pub(super) fn state(self) -> &'a CatalogState {
        &self.context.snapshot
    }

    /// Returns all relations: tables, keys, views and sequences of users, then the system tables.
    pub(super) fn all(self) -> Vec<Relation<'a>> {
        let state = self.state();
        let tables = state.tables().flat_map(|table| {
            let relation = Relation {
                oid: table.oid,
                name: &table.name,
                schema: table.schema,
                owner: table.owner,
                object: RelationObject::Table(table),
            };
            std::iter::once(relation).chain(keys(table).map(Relation::from_key))
        });
        let views = state.views().map(|view| Relation {
            oid: view.oid,
            name: &view.name,
            schema: view.schema,
            owner: view.owner,
            object: RelationObject::View(view),
        });
        let sequences = state.sequences().map(|sequence| Relation::from_sequence(sequence));
        let system_tables =
            self.system_tables.all().iter().filter(|relation| !relation.definition.kind.is_empty()).map(|relation| {
                Relation {
                    oid: Oid(relation.definition.oid),
                    name: relation.definition.name,
                    schema: schema_oid(state, relation.definition.schema),
                    owner: SYSTEM_OWNER,
                    object: RelationObject::System(relation),
                }
            });
        tables.chain(views).chain(sequences).chain(system_tables).collect()
    }

    /// Finds a relation by OID.
    pub(super) fn find_by_oid(self, oid: Oid) -> Option<Relation<'a>> {
        let state = self.state();
        if let Some(table) = state.table(oid) {
            return Some(Relation {
                oid,
                name: &table.name,
                schema: table.schema,
                owner: table.owner,
                object: RelationObject::Table(table),
            });
        }
        if let Some(view) = state.view(oid) {
            return Some(Relation {
                oid,
                name: &view.name,
                schema: view.schema,
                owner: view.owner,
                object: RelationObject::View(view),
            });
        }
        if let Some(sequence) = state.sequence(oid) {
            return Some(Relation::from_sequence(sequence));
        }
        if oid < Oid::FIRST_USER {
            let relation = self.system_tables.find_by_oid(oid)?;
            return Some(Relation {
                oid,
                name: relation.definition.name,
                schema: schema_oid(state, relation.definition.schema),
                owner: SYSTEM_OWNER,
                object: RelationObject::System(relation),
            });
        }
        state.tables().flat_map(|table| keys(table)).find(|key| key.oid == oid).map(Relation::from_key)
    }

    /// Finds a relation by the names of its schema and its own.
    pub(super) fn find(self, schema: &str, name: &str) -> Option<Relation<'a>> {
        if let Some(system_tables) = self.system_tables.find(schema, name) {
            return self.find_by_oid(Oid(system_tables.definition.oid));
        }
        let state = self.state();
        let schema = state.schema_by_name(schema)?.oid;
        let found = match state.relation(schema, name) {
            Some(found) => found.oid(),
            None => {
                let mut keys = state.tables().filter(|table| table.schema == schema).flat_map(|table| keys(table));
                keys.find(|key| key.name == name)?.oid
            }
        };
        self.find_by_oid(found)
    }
}

/// Finds a constraint and its table by OID.
pub(super) fn find_constraint(state: &CatalogState, oid: Oid) -> Option<(&Table, &Constraint)> {
    state.tables().find_map(|table| {
        let constraint = table.constraints.iter().find(|constraint| constraint.oid == oid)?;
        Some((table.as_ref(), constraint))
    })
}

/// Returns the key constraints of a table, then its indexes.
pub(super) fn keys(table: &Table) -> impl Iterator<Item = KeyOrIndex<'_>> {
    let declared = table.constraints.iter().filter_map(move |constraint| {
        let (columns, primary) = match &constraint.kind {
            ConstraintKind::PrimaryKey { columns } => (columns, true),
            ConstraintKind::Unique { columns } => (columns, false),
            ConstraintKind::ForeignKey { .. } | ConstraintKind::Check { .. } => return None,
        };
        let (oid, name, enforced) = (constraint.oid, constraint.name.as_str(), constraint.enforced);
        Some(KeyOrIndex { table, oid, name, columns, index: None, primary, unique: true, enforced })
    });
    let indexes = table.indexes.iter().map(move |index| {
        let (oid, name, columns) = (index.oid, index.name.as_str(), index.columns.as_slice());
        KeyOrIndex {
            table,
            oid,
            name,
            columns,
            index: Some(index),
            primary: false,
            unique: index.unique,
            enforced: true,
        }
    });
    declared.chain(indexes)
}

pub(super) fn schema_oid(state: &CatalogState, name: &str) -> Oid {
    state.schema_by_name(name).map_or(Oid(0), |schema| schema.oid)
}

pub(super) fn schema_name(state: &CatalogState, oid: Oid) -> &str {
    state.schema(oid).map_or("", |schema| schema.name.as_str())
}

pub(super) fn role_name(state: &CatalogState, oid: Oid) -> String {
    state.role(oid).map_or_else(|| format!("unknown (OID={oid})"), |role| role.name.clone())
}

/// Finds a table's column by its id.
pub(super) fn find_column(table: &Table, id: ColumnId) -> Option<&Column> {
    table.columns.iter().find(|column| column.id == id)
}

/// Returns the names of columns, in the order of `ids`.
pub(super) fn column_names<'a>(table: &'a Table, ids: &[ColumnId]) -> Vec<&'a str> {
    ids.iter().filter_map(|id| find_column(table, *id)).map(|column| column.name.as_str()).collect()
}

impl<'a> KeyOrIndex<'a> {
    /// Returns the key columns, then those of INCLUDE.
    pub(super) fn all_columns(&self) -> impl Iterator<Item = ColumnId> + use<'a> {
        let included = self.index.map_or(&[][..], |index| index.included.as_slice());
        self.columns.iter().chain(included).copied()
    }

    /// Returns the sort order of each key column.
    pub(super) fn key_orders(&self) -> impl Iterator<Item = KeyOrder> + use<'a> {
        let written = self.index.map_or(&[][..], |index| index.orders.as_slice());
        let defaults = std::iter::repeat_n(KeyOrder::default(), self.columns.len() - written.len());
        written.iter().cloned().chain(defaults)
    }
}

impl<'a> Relation<'a> {
    fn from_key(key: KeyOrIndex<'a>) -> Self {
        Relation {
            oid: key.oid,
            name: key.name,
            schema: key.table.schema,
            owner: key.table.owner,
            object: RelationObject::KeyOrIndex(key),
        }
    }

    fn from_sequence(sequence: &'a Sequence) -> Self {
        Relation {
            oid: sequence.oid,
            name: &sequence.name,
            schema: sequence.schema,
            owner: sequence.owner,
            object: RelationObject::Sequence(sequence),
        }
    }

    /// Returns `pg_class.relkind`.
    pub(super) fn kind(&self) -> &'static str {
        match self.object {
            RelationObject::Table(table) if table.external.is_some() => "f",
            RelationObject::Table(_) => "r",
            RelationObject::View(_) => "v",
            RelationObject::Sequence(_) => "S",
            RelationObject::KeyOrIndex(_) => "i",
            RelationObject::System(relation) => relation.definition.kind,
        }
    }

    pub(super) fn comment(&self) -> Option<&'a str> {
        match self.object {
            RelationObject::Table(table) => table.comment.as_deref(),
            RelationObject::View(view) => view.comment.as_deref(),
            RelationObject::Sequence(sequence) => sequence.comment.as_deref(),
            RelationObject::System(relation) => Some(relation.definition.description),
            RelationObject::KeyOrIndex(_) => None,
        }
    }

    /// Returns the relation's columns, in order of their numbers.
    pub(super) fn attributes(&self) -> Vec<Attribute<'a>> {
        match self.object {
            RelationObject::Table(table) => table.columns.iter().map(Attribute::from_column).collect(),
            RelationObject::View(view) => (1..)
                .zip(&view.columns)
                .map(|(number, (name, sql_type))| Attribute {
                    comment: view.column_comments.get(&ColumnId(number)).map(String::as_str),
                    ..Attribute::plain(number, name, sql_type.clone())
                })
                .collect(),
            RelationObject::Sequence(_) => (1..)
                .zip(SEQUENCE_COLUMNS)
                .map(|(number, (name, sql_type))| Attribute {
                    not_null: true,
                    ..Attribute::plain(number, name, sql_type)
                })
                .collect(),
            RelationObject::KeyOrIndex(key) => (1..)
                .zip(key.all_columns().filter_map(|id| find_column(key.table, id)))
                .map(|(number, column)| Attribute::plain(number, &column.name, column.sql_type.clone()))
                .collect(),
            RelationObject::System(relation) => (1..)
                .zip(&relation.columns)
                .map(|(number, column)| Attribute {
                    comment: column.description,
                    ..Attribute::plain(number, column.name, column.sql_type.clone())
                })
                .collect(),
        }
    }
}

impl<'a> Attribute<'a> {
    fn from_column(column: &'a Column) -> Self {
        Attribute {
            number: column.id.0,
            name: &column.name,
            sql_type: column.sql_type.clone(),
            not_null: column.not_null,
            default: column.default.as_deref(),
            identity: column.identity,
            comment: column.comment.as_deref(),
        }
    }

    fn plain(number: i32, name: &'a str, sql_type: SqlType) -> Self {
        Attribute { number, name, sql_type, not_null: false, default: None, identity: None, comment: None }
    }
}
