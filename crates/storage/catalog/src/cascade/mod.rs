//! DROP of several objects, optionally with the objects that depend on them.

use std::collections::HashSet;
use std::sync::Arc;

use types::{ColumnId, Oid};

use crate::{CatalogState, Change, Dependant, Error, ObjectKind, Result, Table};

#[cfg(test)]
mod tests;

/// Changes that a DROP makes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DropPlan {
    /// The changes, to be applied in this order.
    pub changes: Vec<Change>,
    /// Dropped objects that the statement does not name.
    pub cascaded: Vec<Dependant>,
}

impl CatalogState {
    /// Returns the changes that drop the schemas, tables, views and sequences with these ids. With `cascade`,
    /// dependants are dropped too; of a table that references a dropped one only the foreign key, of a column only the
    /// DEFAULT. Without it, dependants that are not themselves named fail with [`Error::Dependants`].
    pub fn drop_plan(&self, named: &[Oid], cascade: bool) -> Result<DropPlan> {
        let mut walk = DropTraversal {
            named_objects: named.iter().copied().collect(),
            cascade,
            state: self.clone(),
            plan: DropPlan::default(),
        };
        for &oid in named {
            walk.drop(oid)?;
        }
        Ok(walk.plan)
    }
}

/// Depth-first traversal: dependants are dropped before the object that they depend on.
struct DropTraversal {
    named_objects: HashSet<Oid>,
    cascade: bool,
    /// The state after the changes so far.
    state: CatalogState,
    plan: DropPlan,
}

impl DropTraversal {
    fn drop(&mut self, oid: Oid) -> Result<()> {
        let (kind, name, change) = if let Some(schema) = self.state.schema(oid) {
            (ObjectKind::Schema, schema.name.clone(), Change::DropSchema(oid))
        } else if let Some(table) = self.state.table(oid) {
            (ObjectKind::Table, table.name.clone(), Change::DropTable(oid))
        } else if let Some(view) = self.state.view(oid) {
            (ObjectKind::View, view.name.clone(), Change::DropView(oid))
        } else if let Some(sequence) = self.state.sequence(oid) {
            (ObjectKind::Sequence, sequence.name.clone(), Change::DropSequence(oid))
        } else {
            // Named twice, or already dropped with an earlier object.
            return Ok(());
        };
        let dependants = self.state.dependants(oid);
        if !self.cascade {
            let others: Vec<Dependant> =
                dependants.iter().filter(|dependant| !self.is_named(dependant)).cloned().collect();
            if !others.is_empty() {
                return Err(Error::Dependants { kind, name, dependants: others });
            }
        }
        for dependant in dependants {
            let named = self.is_named(&dependant);
            match &dependant {
                Dependant::Constraint { table, oid, .. } => self.drop_constraint(*table, *oid)?,
                Dependant::Default { table, column, .. } => self.drop_default(*table, *column)?,
                Dependant::Table { oid, .. }
                | Dependant::View { oid, .. }
                | Dependant::Sequence { oid, .. }
                | Dependant::Schema { oid, .. } => {
                    if self.state.relation_by_oid(*oid).is_none() {
                        continue;
                    }
                    self.drop(*oid)?;
                }
                Dependant::Database { .. } => {}
            }
            if !named {
                self.plan.cascaded.push(dependant);
            }
        }
        self.apply(change)
    }

    fn is_named(&self, dependant: &Dependant) -> bool {
        match dependant {
            Dependant::Constraint { table, .. } | Dependant::Default { table, .. } => {
                self.named_objects.contains(table)
            }
            other => other.oid().is_some_and(|oid| self.named_objects.contains(&oid)),
        }
    }

    fn drop_constraint(&mut self, table: Oid, constraint: Oid) -> Result<()> {
        let Some(table) = self.state.table(table) else { return Ok(()) };
        let mut table = Table::clone(table);
        table.constraints.retain(|kept| kept.oid != constraint);
        self.apply(Change::PutTable(Arc::new(table)))
    }

    fn drop_default(&mut self, table: Oid, column: ColumnId) -> Result<()> {
        let Some(table) = self.state.table(table) else { return Ok(()) };
        let mut table = Table::clone(table);
        if let Some(column) = table.columns.iter_mut().find(|known| known.id == column) {
            column.default = None;
            column.sequences.clear();
        }
        self.apply(Change::PutTable(Arc::new(table)))
    }

    fn apply(&mut self, change: Change) -> Result<()> {
        self.state = self.state.apply(&change)?;
        self.plan.changes.push(change);
        Ok(())
    }
}
