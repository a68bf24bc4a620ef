//! CREATE TABLE.

use std::sync::Arc;

use binder::{Binder, DefinePlan};
use catalog::{Change, Column, Distribution, Schema, Storage, Table, TableOrder};
use datafusion::sql::sqlparser::ast::Ident;
use syntax::statement::{
    ColumnDefinition, CreateTable, LikeTable, TableConstraint, TableSource, {self as statement},
};
use types::{CachePolicy, ColumnId, Condition, OnCommit, SqlError, SqlResult};

use super::column_sequence::{self, NewSequence};
use super::{
    column_definition, constraint, distribution_clauses, index, like_clause, name_resolution, storage_parameter,
};

/// Creates a table with the columns that the statement lists.
///
/// # Errors
/// `42P07` for an existing name, `42701` for a duplicate column, `54011` for too many columns, and errors of a type, an
/// expression, a constraint or a key.
pub fn create_table(binder: &Binder<'_>, create: &CreateTable) -> SqlResult<DefinePlan> {
    let TableSource::Columns { columns, like_tables, constraints } = &create.source else {
        return Err(SqlError::internal("create_table was called for a CREATE TABLE without a column list"));
    };
    let context = binder.context();
    let name_resolution::CreationTarget { schema, name, temporary, schema_change: made } =
        name_resolution::creation_target(context, &create.name, create.temporary)?;
    let on_commit = on_commit(create, temporary)?;
    let mut plan = DefinePlan { command_tag: "CREATE TABLE".to_owned(), ..DefinePlan::default() };
    if name_resolution::find_relation_in(&context.snapshot, &schema.name, name).is_some() {
        if !create.if_not_exists {
            return Err(name_resolution::duplicate_relation(name));
        }
        plan.notices.push(already_exists_notice(name));
        return Ok(plan);
    }
    let mut parts = TableElements::default();
    parts.collect(binder, name, columns, like_tables)?;
    let mut table = new_table(binder, &schema, name, parts.columns)?;
    storage_parameter::apply_to_table(&mut table, &create.parameters)?;
    table.temporary = on_commit;
    plan.changes.extend(made);
    table.constraints = parts.checks;
    parts.constraints.extend(constraints.iter().cloned());
    parts.constraints.extend(parts.keys);
    constraint::add_constraints(binder, &mut table, &parts.constraints)?;
    for copied in parts.indexes {
        index::add_index(context, &mut table, copied);
    }
    apply_placement(&mut table, create.distribution.as_ref(), create.order.as_ref())?;
    let mut owned = Vec::new();
    for (position, sequence) in parts.sequences {
        let column = &table.columns[position];
        let (before, after) = column_sequence::attach_sequence(context, &table, column, sequence, &plan.changes)?;
        plan.changes.push(before);
        owned.push(after);
    }
    plan.changes.push(Change::PutTable(Arc::new(table)));
    plan.changes.extend(owned);
    Ok(plan)
}

/// Returns the ON COMMIT action of a temporary table; `None` for a permanent one.
///
/// # Errors
/// `42P16` for ON COMMIT of a permanent table.
pub(crate) fn on_commit(create: &CreateTable, temporary: bool) -> SqlResult<Option<OnCommit>> {
    if create.on_commit.is_some() && !temporary {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(SqlError::new(Condition::InvalidTableDefinition, message));
    }
    Ok(temporary.then(|| create.on_commit.unwrap_or_default()))
}

/// Returns the notice of IF NOT EXISTS for an existing relation.
pub(crate) fn already_exists_notice(name: &str) -> SqlError {
    SqlError::new(Condition::DuplicateTable, format!("relation \"{name}\" already exists, skipping"))
}

/// Builds a table that is owned by the statement's role, and assigns ids to its columns. The table is not in the
/// catalog yet.
///
/// # Errors
/// `42701` for a duplicate column or a system column's name, `54011` for too many columns, `0A000` for none.
pub(crate) fn new_table(binder: &Binder<'_>, schema: &Schema, name: &str, columns: Vec<Column>) -> SqlResult<Table> {
    let mut table = Table {
        oid: (binder.context().new_oid)(),
        schema: schema.oid,
        name: name.to_owned(),
        owner: binder.context().role.oid,
        columns: Vec::with_capacity(columns.len()),
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 1,
        storage: Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: CachePolicy::default(),
        external: None,
    };
    if columns.is_empty() {
        return Err(SqlError::unsupported("a table without columns"));
    }
    for mut column in columns {
        if table.column_by_name(&column.name).is_some() {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(Condition::DuplicateColumn, message));
        }
        column_definition::refuse_system_name(&column.name)?;
        column_definition::refuse_too_many(table.columns.len() + 1)?;
        column.id = ColumnId(table.next_column);
        table.next_column += 1;
        table.columns.push(column);
    }
    Ok(table)
}

/// Applies the clauses DISTRIBUTE, SORT and CLUSTER.
///
/// # Errors
/// `42703` for an unknown column, `42701` for a duplicate one, `42883` for one whose type has no hash function or no
/// order.
pub(crate) fn apply_placement(
    table: &mut Table,
    distribution: Option<&statement::DistributionClause>,
    order: Option<&statement::OrderClause>,
) -> SqlResult<()> {
    if let Some(distribution) = distribution {
        table.distribution = distribution_clauses::resolve_distribution(table, distribution)?;
    }
    if let Some(order) = order {
        table.order = distribution_clauses::resolve_order(table, order)?;
    }
    Ok(())
}

/// Columns, constraints, indexes and sequences from the column list of CREATE TABLE.
#[derive(Default)]
struct TableElements {
    columns: Vec<Column>,
    constraints: Vec<TableConstraint>,
    /// Checks that LIKE copies unchanged.
    checks: Vec<catalog::Constraint>,
    /// Keys that LIKE copies under new names.
    keys: Vec<TableConstraint>,
    indexes: Vec<catalog::Index>,
    /// New sequences, with the positions of their columns.
    sequences: Vec<(usize, NewSequence)>,
}

impl TableElements {
    fn collect(
        &mut self,
        binder: &Binder<'_>,
        table: &str,
        columns: &[ColumnDefinition],
        like_tables: &[LikeTable],
    ) -> SqlResult<()> {
        for position in 0..=columns.len() {
            for like in like_tables.iter().filter(|like| like.position == position) {
                let copied = like_clause::copy_like(binder, like, self.columns.len())?;
                let position = self.columns.len();
                self.sequences.extend(copied.sequences.into_iter().map(|(at, sequence)| (position + at, sequence)));
                self.columns.extend(copied.columns);
                self.checks.extend(copied.checks);
                self.keys.extend(copied.keys);
                self.indexes.extend(copied.indexes);
            }
            let Some(definition) = columns.get(position) else { continue };
            let defined = column_definition::build_column(binder, table, definition)?;
            self.sequences.extend(defined.sequence.map(|sequence| (self.columns.len(), sequence)));
            self.columns.push(defined.column);
            self.constraints.extend(column_constraints(definition));
        }
        Ok(())
    }
}

/// Returns the constraints of a column definition as table constraints.
pub(super) fn column_constraints(definition: &ColumnDefinition) -> impl Iterator<Item = TableConstraint> + '_ {
    let column: &Ident = &definition.name;
    definition.constraints.iter().filter_map(move |written| constraint::from_column_constraint(column, written))
}
