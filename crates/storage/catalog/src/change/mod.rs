//! Changes of the catalog, and their application to a state.

use std::sync::Arc;

use shards::ShardMeta;
use types::Oid;

use crate::dependants::refuse_dependants;
use crate::{
    CatalogState, CompactedShards, Database, Dependant, Error, FlushedRows, ObjectKind, Result, Role, Sample, Schema,
    Sequence, Table, TableRows, View, validation,
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
    SealFreshRows {
        table: Oid,
    },
    /// Replaces the sealed layer by shards, as the end of a flush.
    Flush {
        table: Oid,
        flushed: Arc<FlushedRows>,
    },
    /// Gives an empty table the rows of another table, as of the present or an earlier state.
    CloneRows {
        table: Oid,
        rows: Arc<TableRows>,
    },
    /// Replaces shards by compacted ones.
    CompactShards {
        table: Oid,
        compacted: Arc<CompactedShards>,
    },
}

impl CatalogState {
    /// Returns the state after `change`, or the error by which it is refused. Unchanged parts are shared with `self`.
    pub fn apply(&self, change: &Change) -> Result<CatalogState> {
        let mut next = self.clone();
        match change {
            Change::PutDatabase(database) => {
                validation::database(self, database)?;
                next.definitions_mut().database = Arc::clone(database);
            }
            Change::PutSchema(schema) => {
                validation::schema(self, schema)?;
                next.definitions_mut().put_schema(schema);
            }
            Change::DropSchema(oid) => {
                let schema = self.schema(*oid).ok_or(Error::Missing { kind: ObjectKind::Schema, oid: *oid })?;
                if schema.is_system() {
                    return Err(Error::RequiredObject { kind: ObjectKind::Schema, name: schema.name.clone() });
                }
                refuse_dependants(self, ObjectKind::Schema, *oid, &schema.name)?;
                next.definitions_mut().remove_schema(schema);
            }
            Change::PutTable(table) => {
                validation::table(self, table)?;
                if let Some(old) = self.table(table.oid) {
                    refuse_column_dependants(self, old, table)?;
                }
                next.put_table(table);
                let were_indexed = self.table(table.oid).is_some_and(|old| old.row_indexes().eq(table.row_indexes()));
                if !were_indexed && !self.rows(table.oid).is_empty() {
                    next.set_rows(table.oid, self.rows(table.oid).rebuild_index_entries(table)?);
                }
                for sequence in self.sequences_dropped_by(table) {
                    next.definitions_mut().remove_sequence(sequence);
                }
            }
            Change::DropTable(oid) => {
                let table = self.table(*oid).ok_or(Error::Missing { kind: ObjectKind::Table, oid: *oid })?;
                refuse_dependants(self, ObjectKind::Table, *oid, &table.name)?;
                next.remove_table(table);
                self.owned_sequences(*oid).for_each(|sequence| next.definitions_mut().remove_sequence(sequence));
            }
            Change::PutView(view) => {
                validation::view(self, view)?;
                next.definitions_mut().put_view(view);
                validation::references_to_view(&next, view)?;
            }
            Change::DropView(oid) => {
                let view = self.view(*oid).ok_or(Error::Missing { kind: ObjectKind::View, oid: *oid })?;
                refuse_dependants(self, ObjectKind::View, *oid, &view.name)?;
                next.definitions_mut().remove_view(view);
            }
            Change::PutSequence(sequence) => {
                validation::sequence(self, sequence)?;
                next.definitions_mut().put_sequence(sequence);
            }
            Change::DropSequence(oid) => {
                let sequence = self.sequence(*oid).ok_or(Error::Missing { kind: ObjectKind::Sequence, oid: *oid })?;
                validation::sequence_is_no_identity(self, sequence)?;
                refuse_dependants(self, ObjectKind::Sequence, *oid, &sequence.name)?;
                next.definitions_mut().remove_sequence(sequence);
            }
            Change::PutRole(role) => {
                validation::role(self, role)?;
                next.definitions_mut().put_role(role);
                validation::superuser_remains(&next, &role.name)?;
            }
            Change::DropRole(oid) => {
                let role = self.role(*oid).ok_or(Error::Missing { kind: ObjectKind::Role, oid: *oid })?;
                refuse_dependants(self, ObjectKind::Role, *oid, &role.name)?;
                next.definitions_mut().remove_role(role);
                validation::superuser_remains(&next, &role.name)?;
            }
            Change::AddShards { table, shards, sample } => {
                let owner = self.table(*table).ok_or(Error::Missing { kind: ObjectKind::Table, oid: *table })?;
                validation::shards(owner, shards)?;
                let mut rows = TableRows::clone(self.rows(*table));
                let committed = rows.committed_mut();
                committed.shards = committed.shards.append(shards, sample.as_ref());
                committed.counters.writes += 1;
                next.set_rows(*table, rows);
            }
            Change::RemoveAllRows { table } => next.set_rows(*table, self.find_rows(*table)?.without_any_rows()),
            Change::SealFreshRows { table } => {
                let sealed = self.find_rows(*table)?.seal_active_layer();
                next.set_rows(*table, sealed.ok_or(Error::RowsMoved { table: *table })?);
            }
            Change::Flush { table, flushed } => {
                validation::shards(self.find_table(*table)?, &flushed.shards)?;
                let rows = self.find_rows(*table)?.flush_sealed(flushed);
                next.set_rows(*table, rows.ok_or(Error::RowsMoved { table: *table })?);
            }
            Change::CloneRows { table, rows } => {
                let owner = self.find_table(*table)?;
                rows.shards.shards.iter().try_for_each(|shard| validation::shards(owner, &[shard]))?;
                if !self.rows(*table).is_empty() {
                    return Err(Error::RowsMoved { table: *table });
                }
                next.set_rows(*table, self.rows(*table).clone_rows_from(rows, owner)?);
                next.record_shared_shards(*table);
            }
            Change::CompactShards { table, compacted } => {
                validation::shards(self.find_table(*table)?, &compacted.shards)?;
                let rows = self.find_rows(*table)?.replace_compacted_shards(compacted);
                next.set_rows(*table, rows.ok_or(Error::RowsMoved { table: *table })?);
            }
        }
        Ok(next)
    }

    fn find_table(&self, table: Oid) -> Result<&Arc<Table>> {
        self.table(table).ok_or(Error::Missing { kind: ObjectKind::Table, oid: table })
    }

    fn find_rows(&self, table: Oid) -> Result<&Arc<TableRows>> {
        self.find_table(table).map(|table| self.rows(table.oid))
    }
}

/// Refuses a change that drops or retypes a column which a view or another table's foreign key uses.
fn refuse_column_dependants(state: &CatalogState, old: &Table, new: &Table) -> Result<()> {
    for column in &old.columns {
        let remaining = new.column(column.id);
        if remaining.is_some_and(|kept| kept.sql_type == column.sql_type) {
            continue;
        }
        let mut dependants = state.column_dependants(old.oid, column.id);
        if remaining.is_some() {
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
