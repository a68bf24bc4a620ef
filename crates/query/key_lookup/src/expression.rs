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
use functions::error::from_datafusion;
use session_context::Session;
use types::{SqlError, SqlResult};

use super::chain::{Step, moment_column, parameter_column};

/// Compiled expression.
pub(super) type Expression = Arc<dyn PhysicalExpr>;

pub(super) fn compile(expr: &Expr, over: &DFSchema) -> SqlResult<Expression> {
    create_physical_expr(expr, over, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        .map_err(from_datafusion)
}

pub(super) fn evaluate(expr: &Expression, rows: &RecordBatch) -> SqlResult<ArrayRef> {
    expr.evaluate(rows).and_then(|value| value.into_array(rows.num_rows())).map_err(from_datafusion)
}

/// Returns true if the expression reads no columns except parameters.
pub(super) fn is_constant(expr: &Expr, over: &DFSchema) -> bool {
    expr.column_refs().into_iter().all(|column: &Column| over.maybe_index_of_column(column).is_some())
}

/// Evaluates an expression without columns, such as `now()`, for a statement; without a session, with its value at
/// planning time.
pub(super) fn moment(expr: &Expr, session: Option<&Arc<Session>>) -> SqlResult<ScalarValue> {
    if let Some(value) = session.and_then(|session| functions::call_alone(expr, session)) {
        return value;
    }
    let expr = match session {
        Some(session) => binder::for_statement(expr.clone(), session).map_err(from_datafusion)?,
        None => expr.clone(),
    };
    let one = batch(&Arc::new(Schema::empty()), Vec::new(), 1)?;
    let value = evaluate(&compile(&expr, &DFSchema::empty())?, &one)?;
    ScalarValue::try_from_array(&value, 0).map_err(from_datafusion)
}

/// Returns the schema that a step's expressions are compiled against: the columns at `narrowed` of its input (all if
/// `None`) with their actual types, then the parameters.
pub(super) fn schema_over(
    step: &Step,
    narrowed: Option<&[usize]>,
    actual: &[DataType],
    parameters: &[Field],
) -> SqlResult<DFSchema> {
    let all: Vec<usize> = (0..step.input.fields().len()).collect();
    let positions = narrowed.unwrap_or(&all);
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
        None => moment_column(at),
        Some(at) => parameter_column(&format!("${}", at + 1)),
    };
    types.iter().enumerate().map(|(at, of)| Field::new(name(at), of.clone(), true)).collect()
}

/// Returns the parameters as columns of `rows` equal values.
pub(super) fn repeated(one: &RecordBatch, rows: usize) -> SqlResult<Vec<ArrayRef>> {
    if rows == 1 {
        return Ok(one.columns().to_vec());
    }
    let repeat = |values: &ArrayRef| {
        let value = ScalarValue::try_from_array(values, 0)?;
        value.to_array_of_size(rows)
    };
    one.columns().iter().map(|values| repeat(values).map_err(from_datafusion)).collect()
}

pub(super) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> SqlResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(internal)
}

pub(super) fn internal(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("key lookup failed: {error}"))
}
