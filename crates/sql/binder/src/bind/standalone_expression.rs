//! Standalone expressions: DEFAULT, CHECK, arguments of EXECUTE, AS OF.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use catalog::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::utils::{find_aggregate_exprs, find_window_exprs};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, Projection};
use datafusion::scalar::ScalarValue;
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use functions::cast::{CastKind, lower_cast};
use functions::error::from_datafusion;
use functions::type_rules::{Operand, operand_type_beside, plain_type_name};
use plan::schema_of;
use syntax::Walk;
use types::numeric::NumericPrecision;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::context_provider::Provider;
use super::{Binder, parameter_types, query, resolve, type_inference_limit};
use crate::semantics::expr_type::type_of;
use crate::{rewrite, semantics};

/// Analyzes an expression over a table's columns and casts it to `wanted`.
pub(super) fn bind_over_columns(
    binder: &Binder<'_>,
    written: &ast::Expr,
    columns: &[Column],
    wanted: &SqlType,
) -> SqlResult<Expr> {
    refuse_subqueries(written, "check constraint")?;
    let schema = DFSchema::try_from(schema_of(columns).as_ref().clone()).map_err(from_datafusion)?;
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let (expr, sql_type) = analyze_expression(binder, written, &names, schema, "check constraints")?;
    if sql_type != *wanted && sql_type != SqlType::Unknown {
        let message = format!("argument of CHECK must be type {wanted}, not type {}", plain_type_name(&sql_type));
        return Err(SqlError::new(Condition::DatatypeMismatch, message));
    }
    lower_cast(expr, &sql_type, wanted, CastKind::Assignment, binder.session()).map_err(from_datafusion)
}

/// Analyzes an expression without columns and casts it to `wanted`.
pub(super) fn bind_default(binder: &Binder<'_>, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Expr> {
    let (expr, sql_type) = bind_without_columns(binder, written)?;
    lower_cast(expr, &sql_type, wanted, CastKind::Assignment, binder.session()).map_err(from_datafusion)
}

/// Returns the type of a default before its cast.
pub(super) fn default_type(binder: &Binder<'_>, written: &ast::Expr) -> SqlResult<SqlType> {
    bind_without_columns(binder, written).map(|(_, sql_type)| sql_type)
}

fn bind_without_columns(binder: &Binder<'_>, written: &ast::Expr) -> SqlResult<(Expr, SqlType)> {
    refuse_subqueries(written, "DEFAULT expression")?;
    analyze_expression(binder, written, &[], DFSchema::empty(), "DEFAULT expressions").map_err(|error| {
        match error.condition {
            Condition::UndefinedColumn | Condition::UndefinedTable => {
                SqlError::new(Condition::FeatureNotSupported, "cannot use column reference in DEFAULT expression")
            }
            _ => error,
        }
    })
}

/// Evaluates a default and returns its value in text format.
pub(super) fn constant_text(binder: &Binder<'_>, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Option<String>> {
    let value = bind_default(binder, written, wanted)?;
    let text =
        lower_cast(value, wanted, &SqlType::Text, CastKind::Explicit, binder.session()).map_err(from_datafusion)?;
    let array = evaluate(binder, text)?;
    let texts = cast(&array, &DataType::Utf8View).map_err(|error| SqlError::internal(error.to_string()))?;
    let texts = texts.as_string_view();
    Ok((!texts.is_null(0)).then(|| texts.value(0).to_owned()))
}

/// Evaluates an argument of EXECUTE.
pub(super) fn evaluate_constant(binder: &Binder<'_>, written: &ast::Expr, wanted: &SqlType) -> SqlResult<ScalarValue> {
    refuse_subqueries(written, "EXECUTE parameter")?;
    let (expr, sql_type) = analyze_expression(binder, written, &[], DFSchema::empty(), "EXECUTE parameters")?;
    let wanted = parameter_value_type(&expr, &sql_type, wanted)?;
    let value =
        lower_cast(expr, &sql_type, &wanted, CastKind::Assignment, binder.session()).map_err(from_datafusion)?;
    ScalarValue::try_from_array(&evaluate(binder, value)?, 0).map_err(from_datafusion)
}

/// Returns the type of a parameter's value: a numeric parameter has the digits of its value; any other type is
/// `wanted` itself.
fn parameter_value_type(value: &Expr, from: &SqlType, wanted: &SqlType) -> SqlResult<SqlType> {
    if *from == SqlType::Unknown {
        return match (operand_type_beside(wanted, Operand::new(value, from)), wanted) {
            // Like a parameter that is sent by a client, it is text if its digits do not fit into a numeric.
            (Err(error), SqlType::Numeric { .. }) if error.condition == Condition::NumericValueOutOfRange => {
                Ok(SqlType::Text)
            }
            (taken, _) => taken,
        };
    }
    Ok(match (wanted, from) {
        (SqlType::Numeric { .. }, from) => {
            NumericPrecision::from_sql_type(from).map_or_else(|| wanted.clone(), NumericPrecision::sql_type)
        }
        (SqlType::Array(element), SqlType::Array(from)) => {
            SqlType::Array(Box::new(parameter_value_type(value, from, element)?))
        }
        _ => wanted.clone(),
    })
}

/// Plans an expression without columns and subqueries as one row of one column of type `wanted`; `place` names the
/// construct in error messages.
pub(super) fn plan_single_value(
    binder: &Binder<'_>,
    written: &ast::Expr,
    wanted: &SqlType,
    parameter_types: &[Option<SqlType>],
    place: &str,
) -> SqlResult<LogicalPlan> {
    refuse_subqueries(written, place)?;
    let analyzed = analyze_expression_with(binder, written, &[], DFSchema::empty(), place, parameter_types);
    let (expr, sql_type) = analyzed.map_err(|error| match error.condition {
        Condition::UndefinedColumn | Condition::UndefinedTable => {
            SqlError::new(Condition::FeatureNotSupported, format!("cannot use column reference in {place}"))
        }
        _ => error,
    })?;
    let value = lower_cast(expr, &sql_type, wanted, CastKind::Assignment, binder.session()).map_err(from_datafusion)?;
    project_single_column(value, Arc::new(DFSchema::empty()))
}

/// Evaluates an expression without columns to an array of one value.
pub(super) fn evaluate(binder: &Binder<'_>, expr: Expr) -> SqlResult<Arc<dyn Array>> {
    let schema = DFSchema::empty();
    let physical = binder.state().create_physical_expr(expr, &schema).map_err(from_datafusion)?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(|error| SqlError::internal(error.to_string()))?;
    physical.evaluate(&row).and_then(|value| value.into_array(1)).map_err(from_datafusion)
}

/// Analyzes an expression; returns it with its final type.
fn analyze_expression(
    binder: &Binder<'_>,
    written: &ast::Expr,
    columns: &[String],
    schema: DFSchema,
    place: &str,
) -> SqlResult<(Expr, SqlType)> {
    analyze_expression_with(binder, written, columns, schema, place, &[])
}

/// Analyzes an expression like [`analyze_expression`], given the resolved types of parameters.
fn analyze_expression_with(
    binder: &Binder<'_>,
    written: &ast::Expr,
    columns: &[String],
    schema: DFSchema,
    place: &str,
    parameter_types: &[Option<SqlType>],
) -> SqlResult<(Expr, SqlType)> {
    let mut written = written.clone();
    rewrite::rewrite_expr(&mut written)?;
    semantics::rewrite_expr(&mut written)?;
    resolve::resolve_expression(binder.context, &binder.relation_sources, &mut written, columns)?;
    type_inference_limit::check_inference_cost(&written)?;
    let provider = Provider::new(binder);
    let mut context = PlannerContext::new().with_prepare_param_data_types(parameter_types::fields(parameter_types));
    let expr = SqlToRel::new(&provider).sql_to_expr(written, &schema, &mut context).map_err(from_datafusion)?;
    let refused = |what: &str, condition| Err(SqlError::new(condition, format!("{what} are not allowed in {place}")));
    if !find_aggregate_exprs([&expr]).is_empty() {
        return refused("aggregate functions", Condition::GroupingError);
    }
    if !find_window_exprs([&expr]).is_empty() {
        return refused("window functions", Condition::WindowingError);
    }
    if expr.exists(|expr| Ok(matches!(expr, Expr::Unnest(_)))).map_err(from_datafusion)? {
        return refused("set-returning functions", Condition::FeatureNotSupported);
    }
    match query::analyze(binder, project_single_column(expr, Arc::new(schema))?)? {
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr.into_iter().next().map(Expr::unalias);
            let expr = expr.ok_or_else(|| SqlError::internal("analyzed projection of an expression is empty"))?;
            let sql_type = type_of(&expr, projection.input.schema().as_ref()).map_err(from_datafusion)?;
            Ok((expr, sql_type))
        }
        _ => Err(SqlError::internal("analyzed plan of an expression is not a projection")),
    }
}

/// Builds a plan whose only column is the expression.
fn project_single_column(expr: Expr, schema: DFSchemaRef) -> SqlResult<LogicalPlan> {
    let input = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema });
    let plan = Projection::try_new(vec![expr.alias("value")], Arc::new(input)).map_err(from_datafusion)?;
    Ok(LogicalPlan::Projection(plan))
}

fn refuse_subqueries(written: &ast::Expr, place: &str) -> SqlResult<()> {
    let found = written.walk_expressions(|expr| match expr {
        ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if found.is_break() {
        let message = format!("cannot use subquery in {place}");
        return Err(SqlError::new(Condition::FeatureNotSupported, message));
    }
    Ok(())
}
