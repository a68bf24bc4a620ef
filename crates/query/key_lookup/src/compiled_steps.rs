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

use super::compiled_chain::CompiledChain;
use super::lookup_chain::StepKind;
use super::vectorized_expression::{Expression, arrow_error, compile, evaluate, new_batch};

/// Step of a chain with its expressions compiled.
#[derive(Debug)]
pub(super) enum CompiledStep {
    Filter(Expression),
    Project(Vec<Expression>, SchemaRef),
    Aggregate(Vec<FilteredAggregate>, SchemaRef),
    Sort(Vec<(Expression, SortOptions)>),
    Limit { skip: Option<Expression>, fetch: Option<Expression> },
}

/// Aggregate function with its FILTER clause.
type FilteredAggregate = (Arc<AggregateFunctionExpr>, Option<Expression>);

/// Values of OFFSET and LIMIT in one run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LimitOffset {
    pub(super) skip: usize,
    pub(super) fetch: Option<usize>,
}

impl CompiledChain {
    /// Evaluates OFFSET and LIMIT; `None` for invalid values, which the plan reports.
    pub(super) fn evaluate_limit(&self, one: &RecordBatch) -> SqlResult<Option<LimitOffset>> {
        let mut counts = LimitOffset::default();
        for step in &self.steps {
            let CompiledStep::Limit { skip, fetch } = step else { continue };
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
            counts = LimitOffset { skip: skip.unwrap_or(0), fetch };
        }
        Ok(Some(counts))
    }

    /// Applies the steps to the rows; `one` is the row of parameters.
    pub(super) fn apply_steps(
        &self,
        rows: RecordBatch,
        one: &RecordBatch,
        counts: LimitOffset,
    ) -> SqlResult<RecordBatch> {
        let mut rows = rows;
        for step in &self.steps {
            rows = match step {
                CompiledStep::Filter(condition) => {
                    let holds = evaluate(condition, &rows)?;
                    filter_record_batch(&rows, holds.as_boolean()).map_err(arrow_error)?
                }
                CompiledStep::Project(columns, schema) => {
                    let mut made: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
                    for column in columns {
                        made.push(evaluate(column, &rows)?);
                    }
                    made.extend_from_slice(&rows.columns()[rows.num_columns() - self.parameter_columns..]);
                    new_batch(schema, made, rows.num_rows())?
                }
                CompiledStep::Aggregate(aggregates, schema) => {
                    let mut made: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
                    for aggregate in aggregates {
                        made.push(evaluate_aggregate(aggregate, &rows)?);
                    }
                    made.extend_from_slice(&one.columns()[..self.parameter_columns]);
                    new_batch(schema, made, 1)?
                }
                CompiledStep::Sort(sorts) if 1 < rows.num_rows() => {
                    let columns = sorts
                        .iter()
                        .map(|(by, options)| Ok(SortColumn { values: evaluate(by, &rows)?, options: Some(*options) }));
                    let order = lexsort_to_indices(&columns.collect::<SqlResult<Vec<_>>>()?, None);
                    take_record_batch(&rows, &order.map_err(arrow_error)?).map_err(arrow_error)?
                }
                CompiledStep::Sort(_) => rows,
                CompiledStep::Limit { .. } => {
                    let start = counts.skip.min(rows.num_rows());
                    let left = rows.num_rows() - start;
                    rows.slice(start, counts.fetch.map_or(left, |fetch| fetch.min(left)))
                }
            };
        }
        Ok(rows)
    }
}

impl CompiledStep {
    pub(super) fn compile(
        effect: &StepKind,
        over: &DFSchema,
        carried: &[Field],
        parameters: &[Field],
    ) -> SqlResult<Self> {
        Ok(match effect {
            StepKind::Filter(condition) => Self::Filter(compile(condition, over)?),
            StepKind::Project(exprs) => {
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
            StepKind::Aggregate(exprs) => {
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
            StepKind::Sort(sorts) => {
                let sort = |sort: &datafusion::logical_expr::SortExpr| {
                    let options = SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
                    compile(&sort.expr, over).map(|by| (by, options))
                };
                Self::Sort(sorts.iter().map(sort).collect::<SqlResult<_>>()?)
            }
            // Counts depend on parameters alone: they are evaluated before any row is read.
            StepKind::Limit { skip, fetch } => {
                let over = Arc::new(Schema::new(parameters.to_vec()));
                let over = &DFSchema::try_from(over).map_err(from_datafusion)?;
                let count = |count: &Option<Expr>| count.as_ref().map(|count| compile(count, over)).transpose();
                Self::Limit { skip: count(skip)?, fetch: count(fetch)? }
            }
        })
    }
}

/// Evaluates an aggregate over all rows.
fn evaluate_aggregate((aggregate, filter): &FilteredAggregate, rows: &RecordBatch) -> SqlResult<ArrayRef> {
    let counted = match filter {
        Some(filter) => {
            let holds = evaluate(filter, rows)?;
            &filter_record_batch(rows, holds.as_boolean()).map_err(arrow_error)?
        }
        None => rows,
    };
    let values: Vec<ArrayRef> =
        aggregate.expressions().iter().map(|value| evaluate(value, counted)).collect::<SqlResult<_>>()?;
    let mut accumulator = aggregate.create_accumulator().map_err(from_datafusion)?;
    accumulator.update_batch(&values).map_err(from_datafusion)?;
    accumulator.evaluate().and_then(|value| value.to_array()).map_err(from_datafusion)
}
