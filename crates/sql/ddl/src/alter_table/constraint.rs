//! ADD CONSTRAINT and DROP CONSTRAINT.

use std::sync::Arc;

use catalog::{Change, ConstraintKind, Dependant, Table};
use syntax::statement::TableConstraint;
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

use super::Alteration;
use crate::{constraint, name_resolution};

impl Alteration<'_> {
    pub(super) fn add_constraint(&mut self, constraint: &TableConstraint) -> SqlResult<()> {
        constraint::add_constraints(self.binder, &mut self.table, std::slice::from_ref(constraint))
    }

    /// Makes a key or foreign key enforced or not enforced.
    pub(super) fn set_enforced(&mut self, name: &str, enforced: bool) -> SqlResult<()> {
        let Some(index) = self.table.constraints.iter().position(|constraint| constraint.name == name) else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", self.table.name);
            return Err(SqlError::new(Condition::UndefinedObject, message));
        };
        let kind = self.table.constraints[index].kind.clone();
        match &kind {
            ConstraintKind::Check { .. } if enforced => return Ok(()),
            ConstraintKind::Check { .. } => return Err(SqlError::unsupported("a CHECK that is not enforced")),
            ConstraintKind::ForeignKey { references, referenced, .. } if enforced => {
                let others = self.context().snapshot.table(*references);
                let target = others.filter(|_| *references != self.old.oid).map_or(&self.table, AsRef::as_ref);
                if !constraint::has_enforced_key(target, referenced) {
                    return Err(constraint::key_not_enforced(target));
                }
            }
            ConstraintKind::PrimaryKey { columns } | ConstraintKind::Unique { columns } if !enforced => {
                let mut without = self.table.clone();
                without.constraints[index].enforced = false;
                if !constraint::has_enforced_key(&without, columns) && self.is_referenced(columns) {
                    let message = format!("cannot stop enforcing constraint {name} because other objects depend on it");
                    return Err(SqlError::new(Condition::DependentObjectsStillExist, message)
                        .with_hint("Alter the foreign keys that refer to its columns to NOT ENFORCED first."));
                }
            }
            _ => {}
        }
        self.table.constraints[index].enforced = enforced;
        Ok(())
    }

    /// Whether an enforced foreign key refers to exactly these columns.
    fn is_referenced(&self, key: &[ColumnId]) -> bool {
        let others = self.context().snapshot.tables().map(AsRef::as_ref).filter(|table| table.oid != self.old.oid);
        others.chain([&self.table]).flat_map(|table| &table.constraints).any(|constraint| match &constraint.kind {
            ConstraintKind::ForeignKey { references, referenced, .. } => {
                constraint.enforced
                    && *references == self.old.oid
                    && referenced.len() == key.len()
                    && key.iter().all(|id| referenced.contains(id))
            }
            _ => false,
        })
    }

    /// Drops a constraint; for a key with CASCADE also the foreign keys that refer to it.
    pub(super) fn drop_constraint(&mut self, name: &str, if_exists: bool, cascade: bool) -> SqlResult<()> {
        let Some(index) = self.table.constraints.iter().position(|constraint| constraint.name == name) else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", self.table.name);
            if !if_exists {
                return Err(SqlError::new(Condition::UndefinedObject, message));
            }
            self.notices.push(SqlError::new(Condition::SuccessfulCompletion, format!("{message}, skipping")));
            return Ok(());
        };
        let dropped = self.table.constraints.remove(index);
        if dropped.kind.is_key() {
            let references = self.references_to(dropped.kind.columns());
            let what =
                format!("constraint {name} on table {}", name_resolution::display_name(self.context(), self.old.oid));
            self.drop_dependants(references, &what, &format!("index {name}"), cascade)?;
        }
        Ok(())
    }

    /// Returns the foreign keys to exactly these columns, none if another key of the table has the same columns.
    fn references_to(&self, key: &[ColumnId]) -> Vec<Dependant> {
        let is_same = |columns: &[ColumnId]| columns.len() == key.len() && columns.iter().all(|id| key.contains(id));
        if self.table.constraints.iter().any(|other| other.kind.is_key() && is_same(other.kind.columns())) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let state = &self.context().snapshot;
        let others = state.tables().map(AsRef::as_ref).filter(|table| table.oid != self.old.oid);
        for table in others.chain([&self.table]) {
            for constraint in &table.constraints {
                if let ConstraintKind::ForeignKey { references, referenced, .. } = &constraint.kind
                    && *references == self.old.oid
                    && is_same(referenced)
                {
                    found.push(Dependant::Constraint {
                        table: table.oid,
                        table_name: table.name.clone(),
                        oid: constraint.oid,
                        name: constraint.name.clone(),
                    });
                }
            }
        }
        found
    }

    /// Drops a constraint of another table.
    pub(super) fn drop_constraint_of(&mut self, table: Oid, constraint: Oid) {
        let known = self.changes_before.iter().rev().find_map(|change| match change {
            Change::PutTable(changed) if changed.oid == table => Some(changed),
            _ => None,
        });
        let Some(found) = known.or_else(|| self.context().snapshot.table(table)) else { return };
        let mut altered = Table::clone(found);
        altered.constraints.retain(|other| other.oid != constraint);
        self.changes_before.push(Change::PutTable(Arc::new(altered)));
    }

    /// Drops the DEFAULT of a column, of this table or another.
    pub(super) fn drop_default_of(&mut self, table: Oid, column: ColumnId) {
        let clear = |table: &mut Table| {
            if let Some(column) = table.columns.iter_mut().find(|known| known.id == column) {
                column.default = None;
                column.sequences.clear();
            }
        };
        if table == self.old.oid {
            clear(&mut self.table);
            return;
        }
        let known = self.changes_before.iter().rev().find_map(|change| match change {
            Change::PutTable(changed) if changed.oid == table => Some(changed),
            _ => None,
        });
        let Some(found) = known.or_else(|| self.context().snapshot.table(table)) else { return };
        let mut altered = Table::clone(found);
        clear(&mut altered);
        self.changes_before.push(Change::PutTable(Arc::new(altered)));
    }
}
