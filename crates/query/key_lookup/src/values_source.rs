//! Rows of VALUES.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::Expr;
use functions::error::from_datafusion;
use types::numeric::NumericPrecision;
use types::{SqlError, SqlResult};

use super::lookup_chain::parameter_column;
use super::vectorized_expression::{Expression, arrow_error, compile, evaluate, new_batch, repeat_parameters};

/// Rows of VALUES, each value an expression over parameters.
#[derive(Debug)]
pub(super) struct ValuesSource {
    pub(super) rows: Vec<Vec<Expression>>,
    pub(super) schema: SchemaRef,
    /// For each column, its vectorized form, if all rows have the same expression.
    vectorized: Vec<Option<VectorizedColumn>>,
}

/// Column whose expression is the same in all rows, each over parameters of its own: it is evaluated once for all rows.
#[derive(Debug)]
struct VectorizedColumn {
    expression: Expression,
    /// Schema of one row's parameters.
    parameter_schema: SchemaRef,
    /// Indexes of the parameters of the first row, then of the next.
    parameters: Vec<usize>,
}

impl ValuesSource {
    pub(super) fn compile(rows: &[Vec<Expr>], schema: &DFSchema, parameters: &[Field]) -> SqlResult<Self> {
        let over = Arc::new(Schema::new(parameters.to_vec()));
        let over = DFSchema::try_from(over).map_err(from_datafusion)?;
        let columns = 0..schema.fields().len();
        let alike = columns.map(|column| VectorizedColumn::try_compile(rows.iter().map(|row| &row[column]), &over));
        let alike = alike.collect::<SqlResult<_>>()?;
        let cells = |row: &Vec<Expr>| row.iter().map(|cell| compile(cell, &over)).collect::<SqlResult<_>>();
        let rows: Vec<Vec<Expression>> = rows.iter().map(cells).collect::<SqlResult<_>>()?;
        let fields = schema.fields().iter().enumerate().map(|(column, field)| {
            let forms = rows.iter().map(|row| row[column].data_type(over.as_arrow()).map_err(from_datafusion));
            let forms = forms.collect::<SqlResult<Vec<_>>>()?;
            let widest = forms
                .into_iter()
                .reduce(common_type)
                .ok_or_else(|| SqlError::internal("key lookup: a VALUES list has no rows"))?;
            Ok(Field::new(field.name(), widest, true))
        });
        let schema = Arc::new(Schema::new(fields.collect::<SqlResult<Vec<_>>>()?));
        Ok(Self { rows, schema, vectorized: alike })
    }

    /// Returns true if all columns are vectorized, so that the parameters are not needed as columns of one row.
    pub(super) fn is_vectorized(&self) -> bool {
        self.vectorized.iter().all(Option::is_some)
    }

    /// Returns the rows, each with the `carried` parameters; `one` is the row of parameters, unused if [all columns are
    /// vectorized](Self::is_alike).
    pub(super) fn evaluate(&self, values: &[ScalarValue], one: &RecordBatch, carried: usize) -> SqlResult<RecordBatch> {
        let Self { rows, schema, vectorized: alike } = self;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len() + one.num_columns());
        for (column, alike) in alike.iter().enumerate() {
            if let Some(alike) = alike {
                columns.push(alike.evaluate(values, rows.len())?);
                continue;
            }
            let form = schema.field(column).data_type();
            let cell = |row: &Vec<Expression>| {
                let cell = evaluate(&row[column], one)?;
                if cell.data_type() == form { Ok(cell) } else { cast(&cell, form).map_err(arrow_error) }
            };
            let cells = rows.iter().map(cell).collect::<SqlResult<Vec<_>>>()?;
            columns.push(match cells.as_slice() {
                [cell] => Arc::clone(cell),
                cells => concat(&cells.iter().map(|cell| &**cell).collect::<Vec<_>>()).map_err(arrow_error)?,
            });
        }
        if carried == 0 {
            return new_batch(schema, columns, rows.len());
        }
        columns.extend(repeat_parameters(one, rows.len())?);
        let fields = schema.fields().iter().chain(one.schema_ref().fields()).cloned();
        new_batch(&Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, rows.len())
    }
}

impl VectorizedColumn {
    /// Compiles the column with these expressions over `parameters`; `None` if they differ.
    fn try_compile<'a>(cells: impl Iterator<Item = &'a Expr>, parameters: &DFSchema) -> SqlResult<Option<Self>> {
        let mut first: Option<(Expr, Vec<Field>)> = None;
        let mut places = Vec::new();
        for cell in cells {
            let (form, read) = renumber_parameters(cell, parameters)?;
            let field = |(at, place): (usize, &usize)| {
                parameters.field(*place).as_ref().clone().with_name(local_parameter_column(at))
            };
            let fields: Vec<Field> = read.iter().enumerate().map(field).collect();
            match &first {
                Some((known, over)) if *known != form || *over != fields => return Ok(None),
                Some(_) => {}
                None => first = Some((form, fields)),
            }
            places.extend(read);
        }
        let Some((form, fields)) = first else { return Ok(None) };
        let over = Arc::new(Schema::new(fields));
        let expression = compile(&form, &DFSchema::try_from(Arc::clone(&over)).map_err(from_datafusion)?)?;
        Ok(Some(Self { expression, parameter_schema: over, parameters: places }))
    }

    fn evaluate(&self, values: &[ScalarValue], rows: usize) -> SqlResult<ArrayRef> {
        let width = self.parameter_schema.fields().len();
        let read = |at: usize| {
            let values = self.parameters.iter().skip(at).step_by(width).map(|place| values[*place].clone());
            ScalarValue::iter_to_array(values).map_err(from_datafusion)
        };
        let columns = (0..width).map(read).collect::<SqlResult<_>>()?;
        evaluate(&self.expression, &new_batch(&self.parameter_schema, columns, rows)?)
    }
}

/// Renumbers the parameters of an expression in the order in which it reads them, and returns their indexes.
fn renumber_parameters(cell: &Expr, parameters: &DFSchema) -> SqlResult<(Expr, Vec<usize>)> {
    let mut read = Vec::new();
    let formed = cell.clone().transform_up(|node| {
        let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
        read.push(parameters.index_of_column(column)?);
        let local = Column::new_unqualified(local_parameter_column(read.len() - 1));
        Ok(Transformed::yes(Expr::Column(local)))
    });
    Ok((formed.map_err(from_datafusion)?.data, read))
}

/// Returns the column name of the parameter that an expression reads at this position.
fn local_parameter_column(at: usize) -> String {
    parameter_column(&format!("of a row {at}"))
}

/// Returns the type that holds values of both types: numeric parameters of several rows have the scale that each was
/// sent with.
fn common_type(left: DataType, right: DataType) -> DataType {
    match (left, right) {
        (DataType::Decimal128(a, a_scale), DataType::Decimal128(b, b_scale)) if 0 <= a_scale && 0 <= b_scale => {
            let digits = |precision, scale: i8| NumericPrecision::new(precision, scale.unsigned_abs());
            digits(a, a_scale).common_type(digits(b, b_scale)).sql_type().arrow_type()
        }
        (DataType::Null, form) | (form, _) => form,
    }
}
