//! Invariants of catalog objects, checked against the state that they are put into.

use std::collections::HashSet;
use std::sync::Arc;

use shards::{ROW_ID_COLUMN, ShardMeta};
use types::{ColumnId, Oid};

use crate::{
    CatalogState, ConstraintKind, Database, Distribution, Error, ObjectKind, Relation, Result, Role, Schema, Sequence,
    Table, View,
};

pub(crate) fn database(state: &CatalogState, database: &Database) -> Result<()> {
    if database.oid != state.database().oid {
        return Err(Error::Missing { kind: ObjectKind::Database, oid: database.oid });
    }
    owner(state, database.owner)
}

pub(crate) fn schema(state: &CatalogState, schema: &Schema) -> Result<()> {
    owner(state, schema.owner)?;
    match state.definitions.schema_names.get(&schema.name) {
        Some(&holder) if holder != schema.oid => {
            Err(Error::DuplicateName { kind: ObjectKind::Schema, name: schema.name.clone() })
        }
        _ => Ok(()),
    }
}

pub(crate) fn table(state: &CatalogState, table: &Table) -> Result<()> {
    owner(state, table.owner)?;
    relation_name(state, table.schema, &table.name, table.oid)?;
    if state.view(table.oid).is_some() || state.sequence(table.oid).is_some() {
        return Err(Error::Missing { kind: ObjectKind::Table, oid: table.oid });
    }
    columns(table)?;
    for column in table.order_columns() {
        column_exists(table, column)?;
    }
    if let Distribution::On(columns) = &table.distribution {
        columns.iter().try_for_each(|&column| column_exists(table, column))?;
    }
    for &sequence in table.columns.iter().flat_map(|column| &column.sequences) {
        sequence_exists(state, sequence)?;
    }
    for identity in table.columns.iter().filter_map(|column| column.identity) {
        sequence_exists(state, identity.sequence)?;
    }
    constraints(state, table)
}

pub(crate) fn sequence(state: &CatalogState, sequence: &Sequence) -> Result<()> {
    owner(state, sequence.owner)?;
    relation_name(state, sequence.schema, &sequence.name, sequence.oid)?;
    if state.table(sequence.oid).is_some() || state.view(sequence.oid).is_some() {
        return Err(Error::Missing { kind: ObjectKind::Sequence, oid: sequence.oid });
    }
    let impossible = || Error::ImpossibleSequence { sequence: sequence.name.clone() };
    let limits = sequence.min..=sequence.max;
    if sequence.increment == 0 || !limits.contains(&sequence.start) || !limits.contains(&sequence.begins) {
        return Err(impossible());
    }
    if let Some(owner) = sequence.owned_by {
        let table = state.table(owner.table).ok_or(Error::Missing { kind: ObjectKind::Table, oid: owner.table })?;
        column_exists(table, owner.column)?;
    }
    Ok(())
}

/// Checks that the sequence does not generate the values of an identity column.
pub(crate) fn sequence_is_no_identity(state: &CatalogState, sequence: &Sequence) -> Result<()> {
    let Some(owner) = sequence.owned_by else { return Ok(()) };
    let column = state.table(owner.table).and_then(|table| Some((table, table.column(owner.column)?)));
    match column {
        Some((table, column)) if column.identity.is_some_and(|identity| identity.sequence == sequence.oid) => {
            Err(Error::IdentitySequence {
                sequence: sequence.name.clone(),
                table: table.name.clone(),
                column: column.name.clone(),
            })
        }
        _ => Ok(()),
    }
}

fn sequence_exists(state: &CatalogState, oid: Oid) -> Result<()> {
    if state.sequence(oid).is_some() { Ok(()) } else { Err(Error::Missing { kind: ObjectKind::Sequence, oid }) }
}

pub(crate) fn view(state: &CatalogState, view: &View) -> Result<()> {
    owner(state, view.owner)?;
    relation_name(state, view.schema, &view.name, view.oid)?;
    if state.table(view.oid).is_some() || state.sequence(view.oid).is_some() {
        return Err(Error::Missing { kind: ObjectKind::View, oid: view.oid });
    }
    for &oid in &view.depends_on {
        if state.relation_by_oid(oid).is_none() && oid != view.oid {
            return Err(Error::Missing { kind: ObjectKind::Relation, oid });
        }
    }
    if depends_on_view(state, &view.depends_on, view.oid) {
        return Err(Error::ViewCycle { view: view.name.clone() });
    }
    for &(oid, column) in &view.columns_used {
        let relation = state.relation_by_oid(oid).ok_or(Error::Missing { kind: ObjectKind::Relation, oid })?;
        if !relation.has_column(column) {
            return Err(Error::MissingColumn { relation: relation.name().to_owned(), column });
        }
    }
    Ok(())
}

/// Checks that the columns that other views use of `view` still exist.
pub(crate) fn references_to_view(state: &CatalogState, view: &View) -> Result<()> {
    let used = state.views().flat_map(|other| &other.columns_used).filter(|(oid, _)| *oid == view.oid);
    for &(_, column) in used {
        if view.column(column).is_none() {
            return Err(Error::MissingColumn { relation: view.name.clone(), column });
        }
    }
    Ok(())
}

pub(crate) fn role(state: &CatalogState, role: &Role) -> Result<()> {
    match state.definitions.role_names.get(&role.name) {
        Some(&holder) if holder != role.oid => {
            Err(Error::DuplicateName { kind: ObjectKind::Role, name: role.name.clone() })
        }
        _ => Ok(()),
    }
}

/// Checks that a superuser that can log in remains, to repair everything else; `role` is the changed one.
pub(crate) fn superuser_remains(state: &CatalogState, role: &str) -> Result<()> {
    if state.roles().any(|role| role.superuser && role.login) {
        return Ok(());
    }
    Err(Error::LastSuperuser { role: role.to_owned() })
}

/// Checks that the shards' columns are columns that the table has or had.
pub(crate) fn shards(table: &Table, shards: &[Arc<ShardMeta>]) -> Result<()> {
    for stats in shards.iter().flat_map(|shard| &shard.columns) {
        if stats.column != ROW_ID_COLUMN && !(1..table.next_column).contains(&stats.column.0) {
            return Err(Error::MissingColumn { relation: table.name.clone(), column: stats.column });
        }
    }
    Ok(())
}

fn owner(state: &CatalogState, oid: Oid) -> Result<()> {
    if state.role(oid).is_some() { Ok(()) } else { Err(Error::Missing { kind: ObjectKind::Role, oid }) }
}

fn relation_name(state: &CatalogState, schema: Oid, name: &str, oid: Oid) -> Result<()> {
    if state.schema(schema).is_none() {
        return Err(Error::Missing { kind: ObjectKind::Schema, oid: schema });
    }
    match state.relation(schema, name) {
        Some(holder) if holder.oid() != oid => {
            let kind = match holder {
                Relation::Table(_) => ObjectKind::Table,
                Relation::View(_) => ObjectKind::View,
                Relation::Sequence(_) => ObjectKind::Sequence,
            };
            Err(Error::DuplicateName { kind, name: name.to_owned() })
        }
        _ => Ok(()),
    }
}

fn columns(table: &Table) -> Result<()> {
    if Table::COLUMN_COUNT_MAX < table.columns.len() {
        return Err(Error::TooManyColumns {
            table: table.name.clone(),
            count: table.columns.len(),
            max: Table::COLUMN_COUNT_MAX,
        });
    }
    let mut names = HashSet::new();
    let mut ids = HashSet::new();
    for column in &table.columns {
        if !(1..table.next_column).contains(&column.id.0) {
            return Err(Error::ColumnIdOutOfRange {
                table: table.name.clone(),
                column: column.name.clone(),
                id: column.id,
                next: table.next_column,
            });
        }
        if !names.insert(&column.name) || !ids.insert(column.id) {
            return Err(Error::DuplicateColumn { table: table.name.clone(), column: column.name.clone() });
        }
    }
    Ok(())
}

fn constraints(state: &CatalogState, table: &Table) -> Result<()> {
    let mut names = HashSet::new();
    let mut has_primary_key = false;
    for constraint in &table.constraints {
        if !names.insert(&constraint.name) {
            return Err(Error::DuplicateConstraint { table: table.name.clone(), constraint: constraint.name.clone() });
        }
        for &column in constraint.kind.columns() {
            column_exists(table, column)?;
        }
        match &constraint.kind {
            ConstraintKind::PrimaryKey { columns } => {
                if has_primary_key {
                    return Err(Error::SecondPrimaryKey { table: table.name.clone() });
                }
                has_primary_key = true;
                if let Some(column) = columns.iter().filter_map(|&id| table.column(id)).find(|column| !column.not_null)
                {
                    return Err(Error::NullablePrimaryKey { table: table.name.clone(), column: column.name.clone() });
                }
            }
            ConstraintKind::ForeignKey { columns, references, referenced, .. } => {
                if columns.is_empty() || columns.len() != referenced.len() {
                    return Err(Error::UnevenForeignKey {
                        table: table.name.clone(),
                        constraint: constraint.name.clone(),
                        columns: columns.len(),
                        referenced: referenced.len(),
                    });
                }
                let target = if *references == table.oid {
                    table
                } else {
                    state.table(*references).ok_or(Error::Missing { kind: ObjectKind::Table, oid: *references })?
                };
                referenced.iter().try_for_each(|&column| column_exists(target, column))?;
            }
            ConstraintKind::Unique { .. } | ConstraintKind::Check { .. } => {}
        }
    }
    Ok(())
}

fn column_exists(table: &Table, column: ColumnId) -> Result<()> {
    if table.column(column).is_some() {
        return Ok(());
    }
    Err(Error::MissingColumn { relation: table.name.clone(), column })
}

/// Returns whether `target` is in `from` or among the dependencies, direct or indirect, of the views in it.
fn depends_on_view(state: &CatalogState, from: &[Oid], target: Oid) -> bool {
    let mut seen = HashSet::new();
    let mut waiting = from.to_vec();
    while let Some(oid) = waiting.pop() {
        if oid == target {
            return true;
        }
        if seen.insert(oid)
            && let Some(view) = state.view(oid)
        {
            waiting.extend(&view.depends_on);
        }
    }
    false
}
