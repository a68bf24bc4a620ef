//! Checks that the existing rows of a table satisfy a key that was not enforced before.

use std::sync::Arc;

use binder::{Binder, NoRowCheck, QueryPlan};
use catalog::{Constraint, ConstraintKind, Table};
use session_context::StatementContext;
use syntax::Statement;
use types::{ColumnId, Condition, SqlError, SqlResult};

use super::name_resolution;

/// Checks that no two rows of `table`, as of `context`, share the columns; NULLs are distinct.
pub(super) fn unique_check(
    binder: &Binder<'_>,
    context: &Arc<StatementContext>,
    table: &Table,
    key: &str,
    columns: &[ColumnId],
) -> SqlResult<NoRowCheck> {
    let names = quoted_names(table, columns);
    let known: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
    let text = format!(
        "SELECT 1 FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
        qualified_name(context, table),
        known.join(" AND "),
        names.join(", ")
    );
    let violation = SqlError::new(Condition::UniqueViolation, format!("could not create unique index \"{key}\""))
        .with_detail(format!("Values of ({}) are duplicated.", names.join(", ")))
        .with_table(schema_name(context, table), &table.name)
        .with_constraint(key);
    Ok(NoRowCheck { query: plan_query(binder, context, &text)?, violation })
}

/// Checks that every row of `table`, as of `context`, satisfies the constraint; `None` for a CHECK.
pub(super) fn constraint_check(
    binder: &Binder<'_>,
    context: &Arc<StatementContext>,
    table: &Table,
    constraint: &Constraint,
) -> SqlResult<Option<NoRowCheck>> {
    match &constraint.kind {
        ConstraintKind::PrimaryKey { columns } | ConstraintKind::Unique { columns } => {
            unique_check(binder, context, table, &constraint.name, columns).map(Some)
        }
        ConstraintKind::ForeignKey { columns, references, referenced, .. } => {
            let target = context.snapshot.table(*references);
            let target = target.ok_or_else(|| SqlError::internal("a foreign key's target table is missing"))?;
            foreign_key_check(binder, context, table, &constraint.name, columns, (target, referenced)).map(Some)
        }
        ConstraintKind::Check { .. } => Ok(None),
    }
}

fn foreign_key_check(
    binder: &Binder<'_>,
    context: &Arc<StatementContext>,
    table: &Table,
    key: &str,
    columns: &[ColumnId],
    (target, referenced): (&Table, &[ColumnId]),
) -> SqlResult<NoRowCheck> {
    let (own, others) = (quoted_names(table, columns), quoted_names(target, referenced));
    let known: Vec<String> = own.iter().map(|name| format!("r.{name} IS NOT NULL")).collect();
    let equal: Vec<String> = own.iter().zip(&others).map(|(own, other)| format!("t.{other} = r.{own}")).collect();
    let text = format!(
        "SELECT 1 FROM {} AS r WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS t WHERE {}) LIMIT 1",
        qualified_name(context, table),
        known.join(" AND "),
        qualified_name(context, target),
        equal.join(" AND ")
    );
    let message = format!("insert or update on table \"{}\" violates foreign key constraint \"{key}\"", table.name);
    let detail = format!("A value of ({}) is not present in table \"{}\".", own.join(", "), target.name);
    let violation = SqlError::new(Condition::ForeignKeyViolation, message)
        .with_detail(detail)
        .with_table(schema_name(context, table), &table.name)
        .with_constraint(key);
    Ok(NoRowCheck { query: plan_query(binder, context, &text)?, violation })
}

fn quoted_names(table: &Table, columns: &[ColumnId]) -> Vec<String> {
    let names = columns.iter().filter_map(|id| table.column(*id));
    names.map(|column| name_resolution::ident(&column.name).to_string()).collect()
}

fn schema_name<'a>(context: &'a StatementContext, table: &Table) -> &'a str {
    context.snapshot.schema(table.schema).map_or("", |schema| schema.name.as_str())
}

fn qualified_name(context: &StatementContext, table: &Table) -> String {
    name_resolution::qualified(schema_name(context, table), &table.name).to_string()
}

/// Plans a query over the catalog of `context`.
pub(super) fn plan_query(binder: &Binder<'_>, context: &Arc<StatementContext>, text: &str) -> SqlResult<QueryPlan> {
    let binder = Binder::new(binder.environment(), context);
    match syntax::parse(text)?.into_iter().next().map(|parsed| parsed.statement) {
        Some(Statement::Query(query)) => binder.plan_query(&query, &[]),
        _ => Err(SqlError::internal(format!("the text of a row check is not a query: {text}"))),
    }
}
