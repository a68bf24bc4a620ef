//! CREATE TABLE AS: creates a table with the columns and rows of a query.

use std::sync::Arc;

use binder::{Binder, DefinePlan, QueryPlan, StatementPlan, WritePlan, write};
use catalog::{Change, Column};
use datafusion::logical_expr::Expr;
use syntax::statement::{CreateTable, TableSource};
use types::{ColumnId, Condition, SqlError, SqlResult, SqlType};

use crate::create_table::{already_exists_notice, apply_placement, new_table, on_commit};
use crate::name_resolution::{creation_target, duplicate_relation, find_relation_in};
use crate::storage_parameter;

/// Plans the new table and the insert of its rows. With IF NOT EXISTS and an existing table, the plan changes nothing.
///
/// # Errors
/// `42P07` for an existing name, `42601` for more names than columns, `42701` for a duplicate column, and errors of the
/// query.
pub fn create_as(binder: &Binder<'_>, create: &CreateTable, declared: &[Option<SqlType>]) -> SqlResult<StatementPlan> {
    let (names, query, with_data) = match &create.source {
        TableSource::Query { column_names, query, with_data } => (column_names, query, *with_data),
        TableSource::Columns { .. } | TableSource::Clone { .. } => {
            return Err(SqlError::internal("create_as was called for a CREATE TABLE without a query"));
        }
    };
    let context = binder.context();
    let target = creation_target(context, &create.name, create.temporary)?;
    let (schema, name) = (target.schema, target.name);
    let on_commit = on_commit(create, target.temporary)?;
    if find_relation_in(&context.snapshot, &schema.name, name).is_some() {
        if !create.if_not_exists {
            return Err(duplicate_relation(name));
        }
        let notices = vec![already_exists_notice(name)];
        return Ok(StatementPlan::Define(DefinePlan {
            command_tag: "CREATE TABLE AS".to_owned(),
            notices,
            ..DefinePlan::default()
        }));
    }
    let bound = binder.plan_query(query, declared)?;
    let mut columns = Vec::with_capacity(bound.columns.len());
    if bound.columns.len() < names.len() {
        return Err(SqlError::new(Condition::SyntaxError, "too many column names were specified"));
    }
    for (place, output) in bound.columns.iter().enumerate() {
        columns.push(Column {
            id: ColumnId(0),
            name: names.get(place).map_or_else(|| output.name.clone(), |name| name.value.clone()),
            sql_type: stored_type(&output.sql_type)?,
            not_null: false,
            default: None,
            missing: None,
            comment: None,
            identity: None,
            sequences: Vec::new(),
        });
    }
    let mut table = new_table(binder, &schema, name, columns)?;
    storage_parameter::apply_to_table(&mut table, &create.parameters)?;
    table.temporary = on_commit;
    apply_placement(&mut table, create.distribution.as_ref(), create.order.as_ref())?;
    let table = Arc::new(table);
    let input: Option<SqlResult<QueryPlan>> = with_data.then(|| {
        let fields = bound.plan.schema().columns();
        let types = write::column_types(&bound.plan)?;
        let values = fields.into_iter().zip(types).zip(&table.columns).map(|((field, from), column)| {
            let value = write::cast_for_assignment(
                Expr::Column(field),
                &from,
                &column.name,
                &column.sql_type,
                binder.session(),
            )?;
            Ok(value.alias(&column.name))
        });
        let plan = write::build_projection(values.collect::<SqlResult<Vec<_>>>()?, bound.plan.clone())?;
        Ok(write::write_input(binder, &table, plan, bound.parameters.clone()))
    });
    Ok(StatementPlan::Write(WritePlan {
        table: Arc::clone(&table),
        changes_before: target.schema_change.into_iter().chain([Change::PutTable(table)]).collect(),
        input: input.transpose()?,
        command_tag: "SELECT",
        notices: Vec::new(),
        returning: None,
        conflict: None,
    }))
}

/// Returns the column type in which a table stores a query's result type.
fn stored_type(sql_type: &SqlType) -> SqlResult<SqlType> {
    use SqlType as T;
    match sql_type {
        T::Unknown | T::Name | T::InternalChar | T::Char(None) => Ok(T::Text),
        T::Oid => Ok(T::Int8),
        T::Int2Vector | T::OidVector => Err(unstorable_type(sql_type)),
        object if object.is_reg_type() => Err(unstorable_type(sql_type)),
        T::Array(element) => stored_type(element).map(|element| T::Array(Box::new(element))),
        other => Ok(other.clone()),
    }
}

fn unstorable_type(sql_type: &SqlType) -> SqlError {
    SqlError::unsupported(format_args!("a column of type {sql_type}"))
}
