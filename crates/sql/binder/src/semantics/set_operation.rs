//! UNION and VALUES: casts every column to the common type of its rows.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union, Values};
use functions::cast::{CastKind, lower_cast};
use functions::external;
use functions::type_rules::{Operand, common_type};
use session_context::EvaluationContext;
use syntax::UNION_BALANCED_MIN;
use types::SqlType;

use super::expr_type::type_of;

/// Flattens a long chain of UNION ALL, so that the types of all inputs are considered together; returns others
/// unchanged.
pub(crate) fn flatten_union(union: Union) -> Union {
    let mut inputs = Vec::new();
    let mut open: Vec<&Arc<LogicalPlan>> = union.inputs.iter().rev().collect();
    while let Some(input) = open.pop() {
        match input.as_ref() {
            LogicalPlan::Union(inner) => open.extend(inner.inputs.iter().rev()),
            _ => inputs.push(Arc::clone(input)),
        }
    }
    if inputs.len() < UNION_BALANCED_MIN { union } else { Union { inputs, schema: union.schema } }
}

/// Casts the inputs' columns to their common types.
pub(crate) fn resolve_union(union: Union, session: &Arc<EvaluationContext>) -> Result<LogicalPlan> {
    let width = union.schema.fields().len();
    let types: Vec<Vec<SqlType>> = union.inputs.iter().map(|input| column_types(input)).collect::<Result<_>>()?;
    let mut common = Vec::with_capacity(width);
    for index in 0..width {
        let column = union.inputs.iter().zip(&types);
        let column: Vec<Operand<'_>> =
            column.filter_map(|(input, types)| Some(column_operand(input, index, types.get(index)?))).collect();
        common.push(common_type(&column, "UNION").map_err(external)?);
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for (input, types) in union.inputs.into_iter().zip(types) {
        inputs.push(cast_columns(input, &types, &common, session)?);
    }
    let schema = with_types(&union.schema, &common)?;
    Ok(LogicalPlan::Union(Union { inputs, schema }))
}

/// Resolves the rows and casts them to their columns' common types.
pub(crate) fn resolve_values(
    values: Values,
    rewrite: impl Fn(Expr) -> Result<Expr>,
    session: &Arc<EvaluationContext>,
) -> Result<LogicalPlan> {
    let empty = DFSchema::empty();
    let rows: Vec<Vec<Expr>> = values
        .values
        .into_iter()
        .map(|row| row.into_iter().map(|expr| rewrite(remove_planning_cast(expr))).collect())
        .collect::<Result<_>>()?;
    let mut common = Vec::new();
    for index in 0..values.schema.fields().len() {
        let types: Vec<SqlType> = rows.iter().map(|row| type_of(&row[index], &empty)).collect::<Result<_>>()?;
        let column: Vec<Operand<'_>> =
            rows.iter().zip(&types).map(|(row, sql_type)| Operand::new(&row[index], sql_type)).collect();
        common.push(common_type(&column, "VALUES").map_err(external)?);
    }
    let mut cast = Vec::with_capacity(rows.len());
    for row in rows {
        let row = row.into_iter().zip(&common).map(|(expr, to)| {
            let from = type_of(&expr, &empty)?;
            lower_cast(expr, &from, to, CastKind::Assignment, session)
        });
        cast.push(row.collect::<Result<Vec<_>>>()?);
    }
    Ok(LogicalPlan::Values(Values { schema: with_types(&values.schema, &common)?, values: cast }))
}

/// Removes the cast that DataFusion added to bring a column of VALUES to a type of its own choice; written casts name
/// their field.
fn remove_planning_cast(expr: Expr) -> Expr {
    match expr {
        Expr::Cast(cast) if cast.field.name().is_empty() && cast.field.metadata().is_empty() => {
            remove_planning_cast(*cast.expr)
        }
        // An untyped NULL in a column of integers.
        Expr::Literal(ScalarValue::Int64(None), None) => Expr::Literal(ScalarValue::Null, None),
        other => other,
    }
}

/// Returns the types of a plan's columns; a quoted literal in its SELECT list is still untyped.
pub(super) fn column_types(plan: &LogicalPlan) -> Result<Vec<SqlType>> {
    if let LogicalPlan::Projection(projection) = plan {
        return projection.expr.iter().map(|expr| type_of(expr, projection.input.schema().as_ref())).collect();
    }
    let schema = plan.schema();
    (0..schema.fields().len())
        .map(|index| type_of(&Expr::Column(Column::from(schema.qualified_field(index))), schema.as_ref()))
        .collect()
}

/// Returns the column of a plan at `index` as an operand; a quoted literal in its SELECT list has its text.
pub(super) fn column_operand<'a>(plan: &'a LogicalPlan, index: usize, sql_type: &'a SqlType) -> Operand<'a> {
    match plan {
        LogicalPlan::Projection(projection) => Operand::new(&projection.expr[index], sql_type),
        _ => Operand::from_type(sql_type),
    }
}

pub(super) fn cast_columns(
    plan: Arc<LogicalPlan>,
    from: &[SqlType],
    to: &[SqlType],
    session: &Arc<EvaluationContext>,
) -> Result<Arc<LogicalPlan>> {
    if from == to {
        return Ok(plan);
    }
    if let LogicalPlan::Projection(projection) = plan.as_ref() {
        let exprs = projection.expr.iter().zip(from.iter().zip(to)).map(|(expr, (from, to))| {
            let (qualifier, name) = expr.qualified_name();
            let cast = lower_cast(expr.clone().unalias(), from, to, CastKind::Assignment, session)?;
            Ok(cast.alias_qualified(qualifier, name))
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        return Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(&projection.input))?)));
    }
    let schema = Arc::clone(plan.schema());
    let exprs = (0..schema.fields().len()).zip(from.iter().zip(to)).map(|(index, (from, to))| {
        let (qualifier, field) = schema.qualified_field(index);
        let cast = lower_cast(Expr::Column(Column::from((qualifier, field))), from, to, CastKind::Assignment, session)?;
        Ok(cast.alias_qualified(qualifier.cloned(), field.name()))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, plan)?)))
}

/// Returns the schema with other column types.
fn with_types(schema: &DFSchemaRef, types: &[SqlType]) -> Result<DFSchemaRef> {
    let fields = schema
        .iter()
        .zip(types)
        .map(|((qualifier, field), sql_type)| {
            let retyped: Field = sql_type.arrow_field(field.name(), true);
            (qualifier.cloned(), Arc::new(retyped))
        })
        .collect();
    Ok(Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?))
}
