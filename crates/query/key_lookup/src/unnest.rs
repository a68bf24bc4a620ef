//! UNNEST of several arrays side by side: their first elements form the first row, and so on.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use functions::error::from_datafusion;
use types::SqlResult;

use super::ROWS_MAX;
use super::vectorized_expression::{Expression, arrow_error, compile, evaluate, new_batch, repeat_parameters};

/// UNNEST of arrays that are computed from parameters alone.
#[derive(Debug)]
pub(super) struct UnnestSource {
    arrays: Vec<Expression>,
    pub(super) schema: SchemaRef,
}

impl UnnestSource {
    /// Compiles the arrays; `schema` has the column names. `None` if one is not an array, or has nested elements.
    pub(super) fn try_compile(arrays: &[Expr], schema: &DFSchema, parameters: &[Field]) -> SqlResult<Option<Self>> {
        let over = DFSchema::try_from(Schema::new(parameters.to_vec())).map_err(from_datafusion)?;
        let arrays = arrays.iter().map(|array| compile(array, &over)).collect::<SqlResult<Vec<_>>>()?;
        let mut fields = Vec::with_capacity(arrays.len());
        for (array, field) in arrays.iter().zip(schema.fields()) {
            let DataType::List(element) = array.data_type(over.as_arrow()).map_err(from_datafusion)? else {
                return Ok(None);
            };
            if element.data_type().is_nested() {
                return Ok(None);
            }
            fields.push(Field::new(field.name(), element.data_type().clone(), true));
        }
        Ok(Some(Self { arrays, schema: Arc::new(Schema::new(fields)) }))
    }

    /// Returns the rows, each with the `carried` parameters; `one` is the row of parameters. `None` if they are too
    /// many for the fast path.
    pub(super) fn evaluate(&self, one: &RecordBatch, carried: usize) -> SqlResult<Option<RecordBatch>> {
        let arrays = self.arrays.iter().map(|array| evaluate(array, one)).collect::<SqlResult<Vec<_>>>()?;
        let values = |array: &ArrayRef| {
            let array = array.as_list::<i32>();
            // A NULL array gives no rows, like an empty one.
            if array.is_null(0) { array.values().slice(0, 0) } else { array.value(0) }
        };
        let values: Vec<ArrayRef> = arrays.iter().map(values).collect();
        let rows = values.iter().map(|values| values.len()).max().unwrap_or(0);
        if ROWS_MAX < rows {
            return Ok(None);
        }
        let mut columns = values.iter().map(|values| pad_with_nulls(values, rows)).collect::<SqlResult<Vec<_>>>()?;
        if carried == 0 {
            return new_batch(&self.schema, columns, rows).map(Some);
        }
        columns.extend(repeat_parameters(one, rows)?);
        let fields = self.schema.fields().iter().chain(one.schema_ref().fields()).cloned();
        new_batch(&Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, rows).map(Some)
    }
}

/// Pads an array with NULLs to the length of the longest one.
fn pad_with_nulls(values: &ArrayRef, rows: usize) -> SqlResult<ArrayRef> {
    if values.len() == rows {
        return Ok(Arc::clone(values));
    }
    let nulls = arrow::array::new_null_array(values.data_type(), rows - values.len());
    concat(&[&**values, &*nulls]).map_err(arrow_error)
}
