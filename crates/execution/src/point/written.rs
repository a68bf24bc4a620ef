//! Rows that a statement writes out.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use planner::error::from_datafusion;
use types::numeric::Digits;
use types::{SqlError, SqlResult};

use super::expression::{Expression, batch, compile, evaluate, internal, repeated};

/// Their values, each of parameters alone.
#[derive(Debug)]
pub(super) struct WrittenRows {
    pub(super) rows: Vec<Vec<Expression>>,
    pub(super) schema: SchemaRef,
}

impl WrittenRows {
    pub(super) fn of(rows: &[Vec<Expr>], schema: &DFSchema, parameters: &[Field]) -> SqlResult<Self> {
        let over = Arc::new(Schema::new(parameters.to_vec()));
        let over = DFSchema::try_from(over).map_err(from_datafusion)?;
        let cells = |row: &Vec<Expr>| row.iter().map(|cell| compile(cell, &over)).collect::<SqlResult<_>>();
        let rows: Vec<Vec<Expression>> = rows.iter().map(cells).collect::<SqlResult<_>>()?;
        let fields = schema.fields().iter().enumerate().map(|(column, field)| {
            let forms = rows.iter().map(|row| row[column].data_type(over.as_arrow()).map_err(from_datafusion));
            let forms = forms.collect::<SqlResult<Vec<_>>>()?;
            let widest = forms.into_iter().reduce(widest).ok_or_else(|| SqlError::internal("no rows"))?;
            Ok(Field::new(field.name(), widest, true))
        });
        let schema = Arc::new(Schema::new(fields.collect::<SqlResult<Vec<_>>>()?));
        Ok(Self { rows, schema })
    }

    /// The rows, each with the `carried` parameters.
    pub(super) fn batch(&self, one: &RecordBatch, carried: usize) -> SqlResult<RecordBatch> {
        let Self { rows, schema } = self;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len() + one.num_columns());
        for column in 0..schema.fields().len() {
            let form = schema.field(column).data_type();
            let cell = |row: &Vec<Expression>| {
                let cell = evaluate(&row[column], one)?;
                if cell.data_type() == form { Ok(cell) } else { cast(&cell, form).map_err(internal) }
            };
            let cells = rows.iter().map(cell).collect::<SqlResult<Vec<_>>>()?;
            columns.push(match cells.as_slice() {
                [cell] => Arc::clone(cell),
                cells => concat(&cells.iter().map(|cell| &**cell).collect::<Vec<_>>()).map_err(internal)?,
            });
        }
        if carried == 0 {
            return batch(schema, columns, rows.len());
        }
        columns.extend(repeated(one, rows.len())?);
        let fields = schema.fields().iter().chain(one.schema_ref().fields()).cloned();
        batch(&Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, rows.len())
    }
}

/// The form that values of both forms have: numerics of several rows come with the digits that each was sent with.
fn widest(left: DataType, right: DataType) -> DataType {
    match (left, right) {
        (DataType::Decimal128(a, a_scale), DataType::Decimal128(b, b_scale)) if 0 <= a_scale && 0 <= b_scale => {
            let digits = |precision, scale: i8| Digits::new(precision, scale.unsigned_abs());
            digits(a, a_scale).union_with(digits(b, b_scale)).sql_type().arrow_type()
        }
        (DataType::Null, form) | (form, _) => form,
    }
}
