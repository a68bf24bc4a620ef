//! WITH RECURSIVE: the non-recursive term determines the types of the columns, and the recursive term reads them with
//! these types.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, RecursiveQuery};
use functions::type_rules::{operand_type_beside, same_base_type};
use functions::{comparison_key, external};
use session_context::EvaluationContext;
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::{Condition, SqlError, SqlType};

use super::set_operation::{cast_columns, column_operand, column_types};
use super::type_resolution::resolve_plan;

/// Limit on the scale of a numeric that gains digits with each iteration.
const SCALE_MAX: u8 = 20;

/// Resolves both terms.
pub(super) fn resolve_recursive(
    query: RecursiveQuery,
    outer: &DFSchema,
    session: &Arc<EvaluationContext>,
) -> Result<LogicalPlan> {
    let first = resolve_plan(Arc::unwrap_or_clone(query.static_term), outer, session)?;
    let recursive = remove_planning_casts(Arc::unwrap_or_clone(query.recursive_term))?;
    let written = column_types(&first)?;
    let mut types: Vec<SqlType> = written
        .iter()
        .map(|sql_type| if *sql_type == SqlType::Unknown { SqlType::Text } else { sql_type.clone() })
        .collect();
    let mut first = cast_columns(Arc::new(first), &written, &types, session)?;
    let mut found = resolve_recursive_term(&recursive, &query.name, &first, outer, session)?;
    let second = column_types(&found)?;
    let grown = types.iter().zip(&second).enumerate().map(|(at, (first, second))| {
        Ok(widened_type(first, &operand_type_beside(first, column_operand(&found, at, second)).map_err(external)?))
    });
    let grown = grown.collect::<Result<Vec<SqlType>>>()?;
    if grown != types {
        first = cast_columns(first, &types, &grown, session)?;
        types = grown;
        found = resolve_recursive_term(&recursive, &query.name, &first, outer, session)?;
    }
    if query.is_distinct
        && let Some(sql_type) = types.iter().find(|sql_type| comparison_key(sql_type).is_some())
    {
        return Err(external(SqlError::unsupported(format_args!("UNION of type {sql_type} in WITH RECURSIVE"))));
    }
    let others = column_types(&found)?;
    for (at, (first, second)) in types.iter().zip(&others).enumerate() {
        let is_same = first == second
            || *second == SqlType::Unknown
            || matches!((first, second), (SqlType::Numeric { .. }, SqlType::Numeric { .. }));
        if !is_same {
            let message = format!(
                "recursive query \"{}\" column {} has type {first} in non-recursive term but type {second} overall",
                query.name,
                at + 1
            );
            let error = SqlError::new(Condition::DatatypeMismatch, message);
            return Err(external(error.with_hint("Cast the output of the non-recursive term to the correct type.")));
        }
    }
    let second = copy_type_metadata(cast_columns(Arc::new(found), &others, &types, session)?, first.schema())?;
    RecursiveQuery::try_new(query.name, first, second, query.is_distinct).map(LogicalPlan::RecursiveQuery)
}

/// Copies the type metadata of `first`'s fields to `second`: both terms must have the same schema.
fn copy_type_metadata(second: Arc<LogicalPlan>, first: &DFSchema) -> Result<Arc<LogicalPlan>> {
    let is_marked = |(first, second): (&FieldRef, &FieldRef)| first.metadata() != second.metadata();
    if !first.fields().iter().zip(second.schema().fields()).any(is_marked) {
        return Ok(second);
    }
    let columns = second.schema().columns().into_iter().zip(first.fields());
    let marked = columns.map(|(column, field)| {
        let name = column.name.clone();
        Expr::Column(column).alias_with_metadata(name, Some(FieldMetadata::from(field.metadata().clone())))
    });
    Projection::try_new(marked.collect(), second).map(|projection| Arc::new(LogicalPlan::Projection(projection)))
}

/// Returns the type of a column that the recursion may widen: a numeric expression would need more digits with each
/// iteration.
fn widened_type(first: &SqlType, second: &SqlType) -> SqlType {
    match (first, second) {
        (SqlType::Numeric { scale: a, .. }, SqlType::Numeric { scale: b, .. }) if first != second => {
            SqlType::Numeric { precision: NUMERIC_PRECISION_MAX, scale: (*a).max(*b).min(SCALE_MAX) }
        }
        (first, second) if same_base_type(first, second) && matches!(first, SqlType::Varchar(_)) => {
            SqlType::Varchar(None)
        }
        (first, _) => first.clone(),
    }
}

/// Resolves the recursive term, which reads the rows of `first`.
fn resolve_recursive_term(
    written: &LogicalPlan,
    name: &str,
    first: &LogicalPlan,
    outer: &DFSchema,
    session: &Arc<EvaluationContext>,
) -> Result<LogicalPlan> {
    let fields: Vec<_> =
        first.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let typed = written.clone().transform_up_with_subqueries(|node| retype_work_table(node, name, &schema))?.data;
    resolve_plan(typed, outer, session)
}

fn retype_work_table(node: LogicalPlan, name: &str, schema: &SchemaRef) -> Result<Transformed<LogicalPlan>> {
    let scan = match &node {
        LogicalPlan::TableScan(scan) => scan,
        // Their schemas are derived from those below.
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) => return node.recompute_schema().map(Transformed::yes),
        _ => return Ok(Transformed::no(node)),
    };
    let Ok(provider) = source_as_provider(&scan.source) else { return Ok(Transformed::no(node)) };
    match provider.downcast_ref::<CteWorkTable>() {
        Some(table) if table.name() == name => {
            let table = provider_as_source(Arc::new(CteWorkTable::new(name, Arc::clone(schema))));
            LogicalPlanBuilder::scan(scan.table_name.clone(), table, scan.projection.clone())?
                .build()
                .map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    }
}

/// Removes the casts that SQL planning added for preliminary types of the non-recursive term.
fn remove_planning_casts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else { return Ok(plan) };
    let exprs = projection.expr.into_iter().map(|expr| {
        let (qualifier, name) = expr.qualified_name();
        match expr.unalias() {
            Expr::Cast(cast) if cast.field.name().is_empty() && cast.field.metadata().is_empty() => {
                cast.expr.alias_qualified(qualifier, name)
            }
            other => other.alias_qualified(qualifier, name),
        }
    });
    Projection::try_new(exprs.collect(), projection.input).map(LogicalPlan::Projection)
}
