//! Compiled steps of a chain, each applied to one record batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{SortColumn, SortOptions, filter_record_batch, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{Field, Int64Type, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregate, LoweredAggregateBuilder};
use functions::error::from_datafusion;
use types::SqlResult;

use super::chain::Effect;
use super::compiled::Compiled;
use super::expression::{Expression, batch, compile, evaluate, internal};

/// Step of a chain with its expressions compiled.
#[derive(Debug)]
pub(super) enum Run {
    Filter(Expression),
    Project(Vec<Expression>, SchemaRef),
    Aggregate(Vec<Aggregate>, SchemaRef),
    Sort(Vec<(Expression, SortOptions)>),
    Cut { skip: Option<Expression>, fetch: Option<Expression> },
}

/// Aggregate function with its FILTER clause.
type Aggregate = (Arc<AggregateFunctionExpr>, Option<Expression>);

/// Values of OFFSET and LIMIT in one run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) skip: usize,
    pub(super) fetch: Option<usize>,
}

impl Compiled {
    /// Evaluates OFFSET and LIMIT; `None` for invalid values, which the plan reports.
    pub(super) fn counts(&self, one: &RecordBatch) -> SqlResult<Option<Counts>> {
        let mut counts = Counts::default();
        for step in &self.steps {
            let Run::Cut { skip, fetch } = step else { continue };
            let count = |count: &Option<Expression>| -> SqlResult<Result<Option<usize>, ()>> {
                let Some(count) = count else { return Ok(Ok(None)) };
                let value = evaluate(count, one)?;
                let Some(value) = value.as_primitive_opt::<Int64Type>() else { return Ok(Err(())) };
                if value.is_null(0) {
                    return Ok(Ok(None));
                }
                Ok(usize::try_from(value.value(0)).map(Some).map_err(|_| ()))
            };
            let (Ok(skip), Ok(fetch)) = (count(skip)?, count(fetch)?) else { return Ok(None) };
            counts = Counts { skip: skip.unwrap_or(0), fetch };
        }
        Ok(Some(counts))
    }

    /// Applies the steps to the rows; `one` is the row of parameters.
    pub(super) fn take_steps(&self, rows: RecordBatch, one: &RecordBatch, counts: Counts) -> SqlResult<RecordBatch> {
        let mut rows = rows;
        for step in &self.steps {
            rows = match step {
                Run::Filter(condition) => {
                    let holds = evaluate(condition, &rows)?;
                    filter_record_batch(&rows, holds.as_boolean()).map_err(internal)?
                }
                Run::Project(columns, schema) => {
                    let mut made: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
                    for column in columns {
                        made.push(evaluate(column, &rows)?);
                    }
                    made.extend_from_slice(&rows.columns()[rows.num_columns() - self.carried..]);
                    batch(schema, made, rows.num_rows())?
                }
                Run::Aggregate(aggregates, schema) => {
                    let mut made: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
                    for aggregate in aggregates {
                        made.push(aggregated(aggregate, &rows)?);
                    }
                    made.extend_from_slice(&one.columns()[..self.carried]);
                    batch(schema, made, 1)?
                }
                Run::Sort(sorts) if 1 < rows.num_rows() => {
                    let columns = sorts
                        .iter()
                        .map(|(by, options)| Ok(SortColumn { values: evaluate(by, &rows)?, options: Some(*options) }));
                    let order = lexsort_to_indices(&columns.collect::<SqlResult<Vec<_>>>()?, None);
                    take_record_batch(&rows, &order.map_err(internal)?).map_err(internal)?
                }
                Run::Sort(_) => rows,
                Run::Cut { .. } => {
                    let start = counts.skip.min(rows.num_rows());
                    let left = rows.num_rows() - start;
                    rows.slice(start, counts.fetch.map_or(left, |fetch| fetch.min(left)))
                }
            };
        }
        Ok(rows)
    }
}

impl Run {
    pub(super) fn of(effect: &Effect, over: &DFSchema, carried: &[Field], parameters: &[Field]) -> SqlResult<Self> {
        Ok(match effect {
            Effect::Filter(condition) => Self::Filter(compile(condition, over)?),
            Effect::Project(exprs) => {
                let columns: Vec<Expression> =
                    exprs.iter().map(|expr| compile(expr, over)).collect::<SqlResult<_>>()?;
                let mut fields = Vec::with_capacity(columns.len() + carried.len());
                for (column, expr) in columns.iter().zip(exprs) {
                    let made = column.data_type(over.as_arrow()).map_err(from_datafusion)?;
                    fields.push(Field::new(expr.schema_name().to_string(), made, true));
                }
                fields.extend_from_slice(carried);
                Self::Project(columns, Arc::new(Schema::new(fields)))
            }
            Effect::Aggregate(exprs) => {
                let mut aggregates = Vec::with_capacity(exprs.len());
                let mut fields = Vec::with_capacity(exprs.len() + carried.len());
                for expr in exprs {
                    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
                    let made = LoweredAggregateBuilder::new(expr, over, over.as_arrow(), &props, &context).build();
                    let LoweredAggregate { aggregate, filter, .. } = made.map_err(from_datafusion)?;
                    let of = aggregate.field().data_type().clone();
                    fields.push(Field::new(expr.schema_name().to_string(), of, true));
                    aggregates.push((aggregate, filter));
                }
                fields.extend_from_slice(carried);
                Self::Aggregate(aggregates, Arc::new(Schema::new(fields)))
            }
            Effect::Sort(sorts) => {
                let sort = |sort: &datafusion::logical_expr::SortExpr| {
                    let options = SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
                    compile(&sort.expr, over).map(|by| (by, options))
                };
                Self::Sort(sorts.iter().map(sort).collect::<SqlResult<_>>()?)
            }
            // Counts depend on parameters alone: they are evaluated before any row is read.
            Effect::Cut { skip, fetch } => {
                let over = Arc::new(Schema::new(parameters.to_vec()));
                let over = &DFSchema::try_from(over).map_err(from_datafusion)?;
                let count = |count: &Option<Expr>| count.as_ref().map(|count| compile(count, over)).transpose();
                Self::Cut { skip: count(skip)?, fetch: count(fetch)? }
            }
        })
    }
}

/// Evaluates an aggregate over all rows.
fn aggregated((aggregate, filter): &Aggregate, rows: &RecordBatch) -> SqlResult<ArrayRef> {
    let counted = match filter {
        Some(filter) => {
            let holds = evaluate(filter, rows)?;
            &filter_record_batch(rows, holds.as_boolean()).map_err(internal)?
        }
        None => rows,
    };
    let values: Vec<ArrayRef> =
        aggregate.expressions().iter().map(|value| evaluate(value, counted)).collect::<SqlResult<_>>()?;
    let mut accumulator = aggregate.create_accumulator().map_err(from_datafusion)?;
    accumulator.update_batch(&values).map_err(from_datafusion)?;
    accumulator.evaluate().and_then(|value| value.to_array()).map_err(from_datafusion)
}
