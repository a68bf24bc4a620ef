//! Compiled expressions over the columns of a row followed by the parameters.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use functions::error::from_datafusion;
use session_context::EvaluationContext;
use types::{SqlError, SqlResult};

use super::lookup_chain::{Step, parameter_column, statement_constant_column, without_parameter_prefix};

/// Compiled expression.
pub(super) type Expression = Arc<dyn PhysicalExpr>;

pub(super) fn compile(expr: &Expr, over: &DFSchema) -> SqlResult<Expression> {
    create_physical_expr(expr, over, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        .map_err(from_datafusion)
}

pub(super) fn evaluate(expr: &Expression, rows: &RecordBatch) -> SqlResult<ArrayRef> {
    expr.evaluate(rows).and_then(|value| value.into_array(rows.num_rows())).map_err(from_datafusion)
}

/// Returns an expression as SQL, with parameters as statements write them, for EXPLAIN.
pub(super) fn show_expression(expr: &Expression) -> String {
    without_parameter_prefix(&fmt_sql(expr.as_ref()).to_string())
}

/// Returns true if the expression reads no columns except parameters.
pub(super) fn is_constant(expr: &Expr, over: &DFSchema) -> bool {
    expr.column_refs().into_iter().all(|column: &Column| over.maybe_index_of_column(column).is_some())
}

/// Evaluates an expression without columns, such as `now()`, for a statement; without a session, with its value at
/// planning time.
pub(super) fn evaluate_statement_constant(
    expr: &Expr,
    session: Option<&Arc<EvaluationContext>>,
) -> SqlResult<ScalarValue> {
    if let Some(value) = session.and_then(|session| functions::evaluate_nullary_call(expr, session)) {
        return value;
    }
    let expr = match session {
        Some(session) => binder::rebind_to_session(expr.clone(), session).map_err(from_datafusion)?,
        None => expr.clone(),
    };
    let one = new_batch(&Arc::new(Schema::empty()), Vec::new(), 1)?;
    let value = evaluate(&compile(&expr, &DFSchema::empty())?, &one)?;
    ScalarValue::try_from_array(&value, 0).map_err(from_datafusion)
}

/// Returns the schema that a step's expressions are compiled against: the columns at `narrowed` of its input (all if
/// `None`) with their actual types, then the parameters.
pub(super) fn step_input_schema(
    step: &Step,
    read_positions: Option<&[usize]>,
    actual: &[DataType],
    parameters: &[Field],
) -> SqlResult<DFSchema> {
    let all: Vec<usize> = (0..step.input.fields().len()).collect();
    let positions = read_positions.unwrap_or(&all);
    let mut fields: Vec<_> = positions
        .iter()
        .zip(actual)
        .map(|(position, actual)| {
            let (qualifier, field) = step.input.qualified_field(*position);
            let field = field.as_ref().clone().with_data_type(actual.clone());
            (qualifier.cloned(), Arc::new(field))
        })
        .collect();
    fields.extend(parameters.iter().map(|field| (None, Arc::new(field.clone()))));
    DFSchema::new_with_metadata(fields, HashMap::default()).map_err(from_datafusion)
}

/// Returns the fields of the parameter columns; the first `moments` are the statement's own constants.
pub(super) fn parameter_fields(types: &[DataType], moments: usize) -> Vec<Field> {
    let name = |at: usize| match at.checked_sub(moments) {
        None => statement_constant_column(at),
        Some(at) => parameter_column(&format!("${}", at + 1)),
    };
    types.iter().enumerate().map(|(at, of)| Field::new(name(at), of.clone(), true)).collect()
}

/// Returns the parameters as columns of `rows` equal values.
pub(super) fn repeat_parameters(parameter_row: &RecordBatch, rows: usize) -> SqlResult<Vec<ArrayRef>> {
    if rows == 1 {
        return Ok(parameter_row.columns().to_vec());
    }
    let repeat = |values: &ArrayRef| {
        let value = ScalarValue::try_from_array(values, 0)?;
        value.to_array_of_size(rows)
    };
    parameter_row.columns().iter().map(|values| repeat(values).map_err(from_datafusion)).collect()
}

pub(super) fn new_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> SqlResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(arrow_error)
}

pub(super) fn arrow_error(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("could not evaluate an expression of a key lookup: {error}"))
}
