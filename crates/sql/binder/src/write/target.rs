//! Target table of a statement that writes.

use std::sync::Arc;

use catalog::{ConstraintKind, Relation, Table};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use types::{ColumnId, Condition, SqlError, SqlResult};

use crate::bind::Binder;
use crate::bind::target_table::TargetTable;

/// Table that rows are written to.
pub(super) struct WriteTarget {
    pub(super) table: Arc<Table>,
    /// Name of its schema.
    pub(super) schema: String,
}

impl WriteTarget {
    /// Resolves the target table and checks that the statement's role may write it. `verb` names the action in error
    /// messages.
    ///
    /// # Errors
    /// SQLSTATE 42P01; 55000 for a view; 42809 for an external table; 42501 for a system table or another role's
    /// table.
    pub(super) fn resolve(binder: &Binder<'_>, name: &ObjectName, verb: &str) -> SqlResult<Self> {
        let table = match binder.resolve_relation(name)? {
            Relation::Table(table) if table.external.is_some() => {
                let message = format!("cannot {verb} external table \"{}\"", table.name);
                return Err(
                    SqlError::new(Condition::WrongObjectType, message).with_detail("External tables are read-only.")
                );
            }
            Relation::Table(table) => table,
            Relation::View(view) => {
                let message = format!("cannot {verb} view \"{}\"", view.name);
                return Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message)
                    .with_detail("Views are not automatically updatable."));
            }
            Relation::Sequence(sequence) => {
                let message = format!("cannot change sequence \"{}\"", sequence.name);
                return Err(SqlError::new(Condition::WrongObjectType, message));
            }
        };
        let context = binder.context();
        if !context.owns(table.owner) {
            let message = format!("permission denied for table {}", table.name);
            return Err(SqlError::new(Condition::InsufficientPrivilege, message));
        }
        let schema = context.snapshot.schema(table.schema).map_or_else(String::new, |schema| schema.name.clone());
        Ok(Self { table, schema })
    }

    /// Returns the table with its alias in the statement.
    pub(super) fn with_alias<'a>(&'a self, alias: Option<&'a Ident>) -> TargetTable<'a> {
        TargetTable { table: &self.table, schema: &self.schema, alias }
    }

    /// Returns the names of its columns.
    pub(super) fn column_names(&self) -> Vec<String> {
        self.table.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Returns the columns that enforced foreign keys refer to, in ascending order of their IDs.
    pub(super) fn referenced_columns(&self, binder: &Binder<'_>) -> Vec<ColumnId> {
        let snapshot = &binder.context().snapshot;
        let mut referenced: Vec<ColumnId> = snapshot
            .tables()
            .flat_map(|table| &table.constraints)
            .filter(|constraint| constraint.enforced)
            .filter_map(|constraint| match &constraint.kind {
                ConstraintKind::ForeignKey { references, referenced, .. } if *references == self.table.oid => {
                    Some(referenced)
                }
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        referenced.sort_unstable();
        referenced.dedup();
        referenced
    }
}
