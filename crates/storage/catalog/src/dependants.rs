//! Dependencies between catalog objects.

use std::fmt;
use std::sync::Arc;

use types::{ColumnId, Oid};

use crate::{CatalogState, ConstraintKind, Error, ObjectKind, Relation, Result, Sequence, Table};

/// Object that depends on another. Its `Display` is PostgreSQL's description: `view v`, `constraint c on table t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dependant {
    Database {
        name: String,
    },
    Schema {
        oid: Oid,
        name: String,
    },
    Table {
        oid: Oid,
        name: String,
    },
    View {
        oid: Oid,
        name: String,
    },
    Sequence {
        oid: Oid,
        name: String,
    },
    /// DEFAULT of a column.
    Default {
        table: Oid,
        table_name: String,
        column: ColumnId,
        name: String,
    },
    /// Foreign key of another table.
    Constraint {
        table: Oid,
        table_name: String,
        oid: Oid,
        name: String,
    },
}

impl Dependant {
    /// Returns the schema, table, view or sequence to be dropped to remove the dependency; `None` if it suffices to
    /// alter one.
    #[must_use]
    pub fn oid(&self) -> Option<Oid> {
        match self {
            Self::Schema { oid, .. }
            | Self::Table { oid, .. }
            | Self::View { oid, .. }
            | Self::Sequence { oid, .. } => Some(*oid),
            Self::Database { .. } | Self::Constraint { .. } | Self::Default { .. } => None,
        }
    }
}

impl From<&Relation> for Dependant {
    fn from(relation: &Relation) -> Self {
        match relation {
            Relation::Table(table) => Self::Table { oid: table.oid, name: table.name.clone() },
            Relation::View(view) => Self::View { oid: view.oid, name: view.name.clone() },
            Relation::Sequence(sequence) => Self::Sequence { oid: sequence.oid, name: sequence.name.clone() },
        }
    }
}

impl fmt::Display for Dependant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database { name } => write!(f, "database {name}"),
            Self::Schema { name, .. } => write!(f, "schema {name}"),
            Self::Table { name, .. } => write!(f, "table {name}"),
            Self::View { name, .. } => write!(f, "view {name}"),
            Self::Sequence { name, .. } => write!(f, "sequence {name}"),
            Self::Default { table_name, name, .. } => {
                write!(f, "default value for column {name} of table {table_name}")
            }
            Self::Constraint { table_name, name, .. } => write!(f, "constraint {name} on table {table_name}"),
        }
    }
}

impl CatalogState {
    /// Returns the direct dependants of a schema, table, view, sequence or role. Parts of a table, such as its
    /// sequences, do not count as its dependants, but dependants of the parts do.
    #[must_use]
    pub fn dependants(&self, oid: Oid) -> Vec<Dependant> {
        let mut found = Vec::new();
        if self.role(oid).is_some() {
            if self.database().owner == oid {
                found.push(Dependant::Database { name: self.database().name.clone() });
            }
            let schemas = self.schemas().filter(|schema| schema.owner == oid);
            found.extend(schemas.map(|schema| Dependant::Schema { oid: schema.oid, name: schema.name.clone() }));
            let relations = self.schemas().flat_map(|schema| self.relations(schema.oid));
            found.extend(relations.filter(|relation| relation.owner() == oid).map(|relation| (&relation).into()));
        }
        let parts =
            |relation: &Relation| matches!(relation, Relation::Sequence(sequence) if sequence.owned_by.is_some());
        let relations = self.relations(oid).filter(|relation| !parts(relation));
        found.extend(relations.map(|relation| Dependant::from(&relation)));
        if !self.definitions.is_referenced(oid) {
            return found;
        }
        let views = self.views().filter(|view| view.depends_on.contains(&oid));
        found.extend(views.map(|view| Dependant::View { oid: view.oid, name: view.name.clone() }));
        found.extend(self.foreign_keys_to(oid, None));
        found.extend(self.defaults_using_sequence(oid));
        for sequence in self.owned_sequences(oid) {
            let needs = self.dependants(sequence.oid).into_iter();
            found.extend(
                needs.filter(|dependant| !matches!(dependant, Dependant::Default { table, .. } if *table == oid)),
            );
        }
        found
    }

    /// Returns the dependants of a column: views that use it, foreign keys that reference it, and DEFAULTs of other
    /// columns that use its sequences.
    #[must_use]
    pub fn column_dependants(&self, table: Oid, column: ColumnId) -> Vec<Dependant> {
        if !self.definitions.is_referenced(table) {
            return Vec::new();
        }
        let views = self.views().filter(|view| view.columns_used.contains(&(table, column)));
        let mut found: Vec<Dependant> =
            views.map(|view| Dependant::View { oid: view.oid, name: view.name.clone() }).collect();
        found.extend(self.foreign_keys_to(table, Some(column)));
        let sequences = self
            .owned_sequences(table)
            .filter(|sequence| sequence.owned_by.is_some_and(|owner| owner.column == column));
        for sequence in sequences {
            let needs = self.dependants(sequence.oid).into_iter();
            found.extend(needs.filter(
                |dependant| !matches!(dependant, Dependant::Default { table: user, column: used, .. } if (*user, *used) == (table, column)),
            ));
        }
        found
    }

    /// Returns the sequences that are dropped when the table becomes `new`: those of dropped columns.
    pub(crate) fn sequences_dropped_by(&self, new: &Table) -> impl Iterator<Item = &Arc<Sequence>> {
        self.owned_sequences(new.oid).filter(|sequence| {
            let column = sequence.owned_by.map(|owner| owner.column);
            column.is_some_and(|column| new.column(column).is_none())
        })
    }

    /// Returns the DEFAULTs that use the sequence.
    fn defaults_using_sequence(&self, sequence: Oid) -> impl Iterator<Item = Dependant> + '_ {
        let columns = self.tables().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        columns.filter(move |(_, column)| column.sequences.contains(&sequence)).map(|(table, column)| {
            Dependant::Default {
                table: table.oid,
                table_name: table.name.clone(),
                column: column.id,
                name: column.name.clone(),
            }
        })
    }

    /// Returns the foreign keys of other tables that reference `target`, or this column of it.
    fn foreign_keys_to(&self, target: Oid, column: Option<ColumnId>) -> impl Iterator<Item = Dependant> + '_ {
        let constraints =
            self.tables().flat_map(|table| table.constraints.iter().map(move |constraint| (table, constraint)));
        constraints.filter_map(move |(table, constraint)| match &constraint.kind {
            ConstraintKind::ForeignKey { references, referenced, .. }
                if *references == target
                    && table.oid != target
                    && column.is_none_or(|column| referenced.contains(&column)) =>
            {
                Some(Dependant::Constraint {
                    table: table.oid,
                    table_name: table.name.clone(),
                    oid: constraint.oid,
                    name: constraint.name.clone(),
                })
            }
            _ => None,
        })
    }
}

/// Fails if anything depends on the object.
pub(crate) fn refuse_dependants(state: &CatalogState, kind: ObjectKind, oid: Oid, name: &str) -> Result<()> {
    let dependants = state.dependants(oid);
    if dependants.is_empty() {
        return Ok(());
    }
    Err(Error::Dependants { kind, name: name.to_owned(), dependants })
}
