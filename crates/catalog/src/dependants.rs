//! Who needs whom.

use std::fmt;

use types::{ColumnId, Oid};

use crate::{CatalogState, ConstraintKind, Error, ObjectKind, Relation, Result};

/// Something that needs something else to exist. Displays as PostgreSQL names it: `view v`, `constraint c on table t`.
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
    /// A foreign key of another table.
    Constraint {
        table: Oid,
        table_name: String,
        oid: Oid,
        name: String,
    },
}

impl Dependant {
    /// The schema, table or view that has to go so that the need goes; `None` where less is enough.
    #[must_use]
    pub fn oid(&self) -> Option<Oid> {
        match self {
            Self::Schema { oid, .. } | Self::Table { oid, .. } | Self::View { oid, .. } => Some(*oid),
            Self::Database { .. } | Self::Constraint { .. } => None,
        }
    }
}

impl From<&Relation> for Dependant {
    fn from(relation: &Relation) -> Self {
        match relation {
            Relation::Table(table) => Self::Table { oid: table.oid, name: table.name.clone() },
            Relation::View(view) => Self::View { oid: view.oid, name: view.name.clone() },
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
            Self::Constraint { table_name, name, .. } => write!(f, "constraint {name} on table {table_name}"),
        }
    }
}

impl CatalogState {
    /// What directly needs the schema, table, view or role with this id.
    #[must_use]
    pub fn dependants(&self, oid: Oid) -> Vec<Dependant> {
        let mut found = Vec::new();
        if self.role(oid).is_some() {
            if self.database.owner == oid {
                found.push(Dependant::Database { name: self.database.name.clone() });
            }
            let schemas = self.schemas().filter(|schema| schema.owner == oid);
            found.extend(schemas.map(|schema| Dependant::Schema { oid: schema.oid, name: schema.name.clone() }));
            let relations = self.schemas().flat_map(|schema| self.relations(schema.oid));
            found.extend(relations.filter(|relation| relation.owner() == oid).map(|relation| (&relation).into()));
        }
        found.extend(self.relations(oid).map(|relation| Dependant::from(&relation)));
        let views = self.views().filter(|view| view.depends_on.contains(&oid));
        found.extend(views.map(|view| Dependant::View { oid: view.oid, name: view.name.clone() }));
        found.extend(self.foreign_keys_to(oid, None));
        found
    }

    /// What needs a column of a table: the views that use it and the foreign keys that refer to it.
    #[must_use]
    pub fn column_dependants(&self, table: Oid, column: ColumnId) -> Vec<Dependant> {
        let views = self.views().filter(|view| view.columns_used.contains(&(table, column)));
        let mut found: Vec<Dependant> =
            views.map(|view| Dependant::View { oid: view.oid, name: view.name.clone() }).collect();
        found.extend(self.foreign_keys_to(table, Some(column)));
        found
    }

    /// Foreign keys of other tables that refer to `target`, to this column of it if one is given.
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

/// Fails if anything needs the object.
pub(crate) fn refuse_dependants(state: &CatalogState, kind: ObjectKind, oid: Oid, name: &str) -> Result<()> {
    let dependants = state.dependants(oid);
    if dependants.is_empty() {
        return Ok(());
    }
    Err(Error::Dependants { kind, name: name.to_owned(), dependants })
}
