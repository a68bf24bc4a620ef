//! Changes of the catalog, and their application to a state.

use std::sync::Arc;

use shards::ShardMeta;
use types::Oid;

use crate::dependants::refuse_dependants;
use crate::{
    CatalogState, Compacted, Database, Dependant, Error, ObjectKind, Result, Role, Sample, Schema, Sequence, Settled,
    Table, TableRows, View, check,
};

#[cfg(test)]
mod tests;

/// Change of the catalog. Put creates an object, or replaces the one with the same id.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Alters the only database.
    PutDatabase(Arc<Database>),
    PutSchema(Arc<Schema>),
    DropSchema(Oid),
    PutTable(Arc<Table>),
    /// Drops the table, its rows, and the sequences that its columns own.
    DropTable(Oid),
    PutView(Arc<View>),
    DropView(Oid),
    PutSequence(Arc<Sequence>),
    DropSequence(Oid),
    PutRole(Arc<Role>),
    DropRole(Oid),
    /// Adds shards to a table; a sample replaces the table's present one.
    AddShards {
        table: Oid,
        shards: Vec<Arc<ShardMeta>>,
        sample: Option<Arc<Sample>>,
    },
    /// Removes all rows of a table, for TRUNCATE.
    RemoveAllRows {
        table: Oid,
    },
    /// Seals the active layer of a table's fresh rows, as the beginning of a flush.
    Seal {
        table: Oid,
    },
    /// Replaces the sealed layer by shards, as the end of a flush.
    Settle {
        table: Oid,
        settled: Arc<Settled>,
    },
    /// Gives an empty table the rows of another table, as of the present or an earlier state.
    Clone {
        table: Oid,
        rows: Arc<TableRows>,
    },
    /// Replaces shards by compacted ones.
    Compact {
        table: Oid,
        compacted: Arc<Compacted>,
    },
}

impl CatalogState {
    /// Returns the state after `change`, or the error by which it is refused. Unchanged parts are shared with `self`.
    pub fn apply(&self, change: &Change) -> Result<CatalogState> {
        let mut next = self.clone();
        match change {
            Change::PutDatabase(database) => {
                check::database(self, database)?;
                next.define().database = Arc::clone(database);
            }
            Change::PutSchema(schema) => {
                check::schema(self, schema)?;
                next.define().put_schema(schema);
            }
            Change::DropSchema(oid) => {
                let schema = self.schema(*oid).ok_or(Error::Missing { kind: ObjectKind::Schema, oid: *oid })?;
                if schema.is_system() {
                    return Err(Error::Required { kind: ObjectKind::Schema, name: schema.name.clone() });
                }
                refuse_dependants(self, ObjectKind::Schema, *oid, &schema.name)?;
                next.define().remove_schema(schema);
            }
            Change::PutTable(table) => {
                check::table(self, table)?;
                if let Some(old) = self.table(table.oid) {
                    refuse_column_dependants(self, old, table)?;
                }
                next.put_table(table);
                let were_indexed = self.table(table.oid).is_some_and(|old| old.row_indexes().eq(table.row_indexes()));
                if !were_indexed && !self.rows(table.oid).is_empty() {
                    next.set_rows(table.oid, self.rows(table.oid).reindexed(table)?);
                }
                for sequence in self.sequences_going_with(table) {
                    next.define().remove_sequence(sequence);
                }
            }
            Change::DropTable(oid) => {
                let table = self.table(*oid).ok_or(Error::Missing { kind: ObjectKind::Table, oid: *oid })?;
                refuse_dependants(self, ObjectKind::Table, *oid, &table.name)?;
                next.remove_table(table);
                self.sequences_of(*oid).for_each(|sequence| next.define().remove_sequence(sequence));
            }
            Change::PutView(view) => {
                check::view(self, view)?;
                next.define().put_view(view);
                check::references_to_view(&next, view)?;
            }
            Change::DropView(oid) => {
                let view = self.view(*oid).ok_or(Error::Missing { kind: ObjectKind::View, oid: *oid })?;
                refuse_dependants(self, ObjectKind::View, *oid, &view.name)?;
                next.define().remove_view(view);
            }
            Change::PutSequence(sequence) => {
                check::sequence(self, sequence)?;
                next.define().put_sequence(sequence);
            }
            Change::DropSequence(oid) => {
                let sequence = self.sequence(*oid).ok_or(Error::Missing { kind: ObjectKind::Sequence, oid: *oid })?;
                check::sequence_is_free(self, sequence)?;
                refuse_dependants(self, ObjectKind::Sequence, *oid, &sequence.name)?;
                next.define().remove_sequence(sequence);
            }
            Change::PutRole(role) => {
                check::role(self, role)?;
                next.define().put_role(role);
                check::superuser_remains(&next, &role.name)?;
            }
            Change::DropRole(oid) => {
                let role = self.role(*oid).ok_or(Error::Missing { kind: ObjectKind::Role, oid: *oid })?;
                refuse_dependants(self, ObjectKind::Role, *oid, &role.name)?;
                next.define().remove_role(role);
                check::superuser_remains(&next, &role.name)?;
            }
            Change::AddShards { table, shards, sample } => {
                let owner = self.table(*table).ok_or(Error::Missing { kind: ObjectKind::Table, oid: *table })?;
                check::shards(owner, shards)?;
                let mut rows = TableRows::clone(self.rows(*table));
                let committed = rows.committed_mut();
                committed.shards = committed.shards.append(shards, sample.as_ref());
                committed.history.written += 1;
                next.set_rows(*table, rows);
            }
            Change::RemoveAllRows { table } => next.set_rows(*table, self.rows_of(*table)?.emptied()),
            Change::Seal { table } => {
                let sealed = self.rows_of(*table)?.sealed();
                next.set_rows(*table, sealed.ok_or(Error::Moved { table: *table })?);
            }
            Change::Settle { table, settled } => {
                check::shards(self.table_of(*table)?, &settled.shards)?;
                let rows = self.rows_of(*table)?.settled(settled);
                next.set_rows(*table, rows.ok_or(Error::Moved { table: *table })?);
            }
            Change::Clone { table, rows } => {
                let owner = self.table_of(*table)?;
                rows.shards.shards.iter().try_for_each(|shard| check::shards(owner, &[shard]))?;
                if !self.rows(*table).is_empty() {
                    return Err(Error::Moved { table: *table });
                }
                next.set_rows(*table, self.rows(*table).cloned_from(rows, owner)?);
                next.note_shared(*table);
            }
            Change::Compact { table, compacted } => {
                check::shards(self.table_of(*table)?, &compacted.shards)?;
                let rows = self.rows_of(*table)?.compacted(compacted);
                next.set_rows(*table, rows.ok_or(Error::Moved { table: *table })?);
            }
        }
        Ok(next)
    }

    fn table_of(&self, table: Oid) -> Result<&Arc<Table>> {
        self.table(table).ok_or(Error::Missing { kind: ObjectKind::Table, oid: table })
    }

    fn rows_of(&self, table: Oid) -> Result<&Arc<TableRows>> {
        self.table_of(table).map(|table| self.rows(table.oid))
    }
}

/// Refuses a change that drops or retypes a column which a view or another table's foreign key uses.
fn refuse_column_dependants(state: &CatalogState, old: &Table, new: &Table) -> Result<()> {
    for column in &old.columns {
        let kept = new.column(column.id);
        if kept.is_some_and(|kept| kept.sql_type == column.sql_type) {
            continue;
        }
        let mut dependants = state.column_dependants(old.oid, column.id);
        if kept.is_some() {
            // A foreign key depends on the column, but not on its type.
            dependants.retain(|dependant| matches!(dependant, Dependant::View { .. }));
        }
        // References of the altered table to itself are checked as part of it.
        dependants.retain(|dependant| {
            !matches!(dependant, Dependant::Constraint { table, .. } | Dependant::Default { table, .. } if *table == old.oid)
        });
        if !dependants.is_empty() {
            return Err(Error::ColumnDependants { table: old.name.clone(), column: column.name.clone(), dependants });
        }
    }
    Ok(())
}
