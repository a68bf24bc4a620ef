//! CREATE INDEX and DROP INDEX.

use std::sync::Arc;

use binder::{Binder, DefinePlan};
use catalog::{Change, ConstraintKind, Index, KeyOrder, Table};
use datafusion::sql::sqlparser::ast::Ident;
use session_context::StatementContext;
use syntax::statement::{CreateIndex, Drop};
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

use super::column_definition::check_collation;
use super::constraint_name::choose_name;
use super::create_table::already_exists_notice;
use super::key_check;
use super::key_type::{has_order, unordered_type};
use super::name_resolution::{self, ResolvedRelation};
use super::{operator_class, storage_parameter};

/// Creates an index of a table; for UNIQUE, the plan has a check of the existing rows.
///
/// # Errors
/// `42P01` or `42809` if the relation is no table, `42501` for a table of another owner, `42703` for an unknown column,
/// `42704` for one whose type has no order, `42P07` for an existing name.
pub fn create_index(binder: &Binder<'_>, create: &CreateIndex) -> SqlResult<DefinePlan> {
    let context = binder.context();
    let table = match name_resolution::resolve_relation(context, &create.table)?
        .ok_or_else(|| name_resolution::undefined_relation(&create.table))?
    {
        ResolvedRelation::Table(table) => table,
        ResolvedRelation::SystemTable => return Err(name_resolution::system_table_error(&create.table)),
        ResolvedRelation::External(table) => return Err(not_indexable(&table.name, "external tables")),
        ResolvedRelation::View(view) => return Err(not_indexable(&view.name, "views")),
        ResolvedRelation::Sequence(sequence) => return Err(not_indexable(&sequence.name, "sequences")),
        ResolvedRelation::Key | ResolvedRelation::Index(..) => {
            return Err(not_indexable(name_resolution::split_name(context, &create.table)?.1, "indexes"));
        }
    };
    name_resolution::check_owner(context, table.owner, "table", &table.name)?;
    let schema = context.snapshot.schema(table.schema).map(Arc::clone);
    let schema =
        schema.ok_or_else(|| SqlError::internal("the schema of the indexed table is missing in the catalog"))?;
    let mut plan = DefinePlan { command_tag: "CREATE INDEX".to_owned(), ..DefinePlan::default() };
    let name = match &create.name {
        Some(name) if name_resolution::find_relation_in(&context.snapshot, &schema.name, &name.value).is_some() => {
            if !create.if_not_exists {
                return Err(name_resolution::duplicate_relation(&name.value));
            }
            plan.notices.push(already_exists_notice(&name.value));
            return Ok(plan);
        }
        Some(name) => name.value.clone(),
        None => {
            let columns: Vec<&str> = create.columns.iter().map(|column| column.column.value.as_str()).collect();
            let included = create.included.iter().map(|column| column.value.as_str());
            default_index_name(context, &table, &columns.into_iter().chain(included).collect::<Vec<_>>())
        }
    };
    name_resolution::check_can_create_in(context, &schema, &name)?;
    let mut index = build_index(&table, create)?;
    if create.unique {
        plan.checks.push(key_check::unique_check(binder, context, &table, &name, &index.columns)?);
    }
    if create.concurrently {
        plan.forbidden_in_transaction_block = Some("CREATE INDEX CONCURRENTLY");
    }
    (index.oid, index.name) = ((context.new_oid)(), name);
    let mut altered = Table::clone(&table);
    altered.indexes.push(index);
    plan.changes.push(Change::PutTable(Arc::new(altered)));
    Ok(plan)
}

/// Builds the index that the statement defines, without oid and name.
fn build_index(table: &Table, create: &CreateIndex) -> SqlResult<Index> {
    let mut index = Index {
        oid: Oid(0),
        name: String::new(),
        columns: Vec::new(),
        unique: create.unique,
        orders: Vec::new(),
        included: Vec::new(),
        options: storage_parameter::index_options(&create.parameters)?,
    };
    let column_named = |name: &Ident| {
        table.column_by_name(&name.value).map(|(_, column)| column).ok_or_else(|| {
            SqlError::new(Condition::UndefinedColumn, format!("column \"{}\" does not exist", name.value))
        })
    };
    for written in &create.columns {
        let column = column_named(&written.column)?;
        check_collation(written.collation.as_ref(), &column.sql_type)?;
        if !has_order(&column.sql_type) {
            return Err(unordered_type(&column.sql_type));
        }
        let collation = written.collation.as_ref().map(name_resolution::join_name);
        let collation = collation.map(|it| it.strip_prefix("pg_catalog.").unwrap_or(&it).to_owned());
        let operators = written.operator_class.as_ref();
        index.columns.push(column.id);
        index.orders.push(KeyOrder {
            descending: written.descending,
            nulls_first: written.nulls_first,
            collation: collation.filter(|it| it != "default"),
            operators: operators.map(|it| operator_class::check_class(it, &column.sql_type)).transpose()?.flatten(),
        });
    }
    if index.orders.iter().all(|order| *order == KeyOrder::default()) {
        index.orders.clear();
    }
    for name in &create.included {
        index.included.push(column_named(name)?.id);
    }
    Ok(index)
}

/// Adds an index to `table` under its default name.
pub(super) fn add_index(context: &StatementContext, table: &mut Table, index: Index) {
    let columns = index.all_columns();
    let names = columns.iter().filter_map(|id| table.column(*id)).map(|column| column.name.as_str());
    let name = default_index_name(context, table, &names.collect::<Vec<_>>());
    table.indexes.push(Index { oid: (context.new_oid)(), name, ..index });
}

/// Returns PostgreSQL's default name for an index of these columns.
fn default_index_name(context: &StatementContext, table: &Table, columns: &[&str]) -> String {
    choose_name(&context.snapshot, table, Some(&columns.join("_")), "idx", true)
}

fn not_indexable(relation: &str, kind: &str) -> SqlError {
    let message = format!("cannot create index on relation \"{relation}\"");
    let detail = format!("This operation is not supported for {kind}.");
    SqlError::new(Condition::WrongObjectType, message).with_detail(detail)
}

/// Drops indexes created by CREATE INDEX.
///
/// # Errors
/// `42704` for an unknown index, `2BP01` for an index of a key and for one that a foreign key needs, `42809` for
/// another kind of relation.
pub(super) fn drop_index(context: &StatementContext, drop: &Drop) -> SqlResult<DefinePlan> {
    let outside_block = drop.concurrently.then_some("DROP INDEX CONCURRENTLY");
    let mut plan = DefinePlan {
        command_tag: "DROP INDEX".to_owned(),
        forbidden_in_transaction_block: outside_block,
        ..DefinePlan::default()
    };
    let mut snapshot = Arc::clone(&context.snapshot);
    for name in &drop.names {
        let found = super::drop::find_index(context, name)?;
        let (table, oid) = match found {
            Ok(found) => found,
            Err(missing) if drop.if_exists => {
                let message = format!("{}, skipping", missing.message);
                plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
                continue;
            }
            Err(missing) => return Err(missing),
        };
        let table = snapshot.table(table.oid).map_or(table, Arc::clone);
        let Some(dropped) = table.indexes.iter().find(|index| index.oid == oid) else { continue };
        let mut altered = Table::clone(&table);
        altered.indexes.retain(|index| index.oid != oid);
        if dropped.unique && is_referenced(context, &altered, &dropped.columns) {
            let message = format!("cannot drop index {} because other objects depend on it", dropped.name);
            return Err(SqlError::new(Condition::DependentObjectsStillExist, message)
                .with_hint("Drop the foreign keys that refer to its columns first."));
        }
        let change = Change::PutTable(Arc::new(altered));
        let after = snapshot.apply(&change).map_err(|error| SqlError::internal(error.to_string()))?;
        snapshot = Arc::new(after);
        plan.changes.push(change);
    }
    Ok(plan)
}

/// Whether a foreign key refers to exactly these columns, for which the table has no other key.
fn is_referenced(context: &StatementContext, table: &Table, columns: &[ColumnId]) -> bool {
    let is_same = |key: &[ColumnId]| key.len() == columns.len() && key.iter().all(|id| columns.contains(id));
    let has_key = table.constraints.iter().any(|it| it.kind.is_key() && is_same(it.kind.columns()));
    if has_key || table.indexes.iter().any(|index| index.unique && is_same(&index.columns)) {
        return false;
    }
    context.snapshot.tables().flat_map(|table| &table.constraints).any(|constraint| {
        matches!(&constraint.kind, ConstraintKind::ForeignKey { references, referenced, .. }
            if *references == table.oid && is_same(referenced))
    })
}
