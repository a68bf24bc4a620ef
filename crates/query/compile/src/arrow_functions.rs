//! Functions without a native form in the engine, evaluated over Arrow arrays.

use std::sync::{Arc, OnceLock};

use arrow::array::{
    ArrayRef, AsArray, Decimal256Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, new_empty_array,
};
use arrow::datatypes::{DataType, Decimal128Type, Field, Schema, SchemaRef, i256};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, utils::collect_columns};
use datafusion::physical_expr_common::physical_expr::{fmt_sql, is_volatile};
use engine::Digest;
use engine::aggregate::{AggregateKind, Moments, sums256_from_binary};
use engine::expression::{ArrowFunction, Expression, Fallback, function_id};
use functions::error::from_datafusion;

use crate::fragment_cache::arrow_expression_digest;

/// Expression as a function of the columns that it reads.
#[derive(Debug)]
pub(super) struct ArrowExpression {
    id: u64,
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    argument_types: Vec<DataType>,
    is_immutable: bool,
}

/// Planned expression over columns of `schema`, which evaluates batches that its compiled form cannot.
#[derive(Debug)]
pub(super) struct PlannedExpression {
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// Call over Arrow arrays, created when a batch first needs it and reused: results for dictionaries are cached by its id.
    call: OnceLock<Option<Expression>>,
}

/// Final values of an aggregate from its states.
#[derive(Debug)]
pub(super) struct FinishAggregate {
    id: u64,
    aggregate: Arc<AggregateFunctionExpr>,
    argument_types: Vec<DataType>,
}

/// Final values of a variance or standard deviation of floats.
#[derive(Debug)]
pub(super) struct FinishFloatVariance {
    id: u64,
    aggregate: Arc<AggregateFunctionExpr>,
}

/// Final values of a variance or standard deviation of exact numbers.
#[derive(Debug)]
pub(super) struct FinishVariance {
    id: u64,
    aggregate: Arc<AggregateFunctionExpr>,
    argument_types: [DataType; 3],
}

impl PlannedExpression {
    pub(super) fn new(expression: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Self {
        Self { expression: Arc::clone(expression), schema: Arc::clone(schema), call: OnceLock::new() }
    }
}

impl Fallback for PlannedExpression {
    fn expression(&self) -> engine::Result<Expression> {
        let call = self.call.get_or_init(|| arrow_call(&self.expression, &self.schema));
        call.clone().ok_or(engine::Error::Internal(
            "an expression that was planned for Arrow arrays cannot be evaluated over them",
        ))
    }
}

/// Returns a call over Arrow arrays of an expression over `schema`; `None` if the type of a column or of the result has no form
/// in the engine.
pub(super) fn arrow_call(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expression> {
    let result = expression.data_type(schema).ok()?;
    if !engine::arrow_convert::is_supported(&result) {
        return None;
    }
    let mut columns: Vec<usize> = collect_columns(expression).iter().map(Column::index).collect();
    columns.sort_unstable();
    columns.dedup();
    let fields: Vec<Field> = columns.iter().map(|column| schema.field(*column).clone()).collect();
    let argument_types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
    if !argument_types.iter().all(engine::arrow_convert::is_supported) {
        return None;
    }
    let moved = Arc::clone(expression).transform(|part| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        let at = columns.binary_search(&column.index()).expect("the columns of an expression were collected");
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>))
    });
    let expression = moved.ok()?.data;
    let is_immutable = !is_volatile(&expression);
    let schema = Arc::new(Schema::new(fields));
    let function = Arc::new(ArrowExpression { id: function_id(), expression, schema, argument_types, is_immutable });
    Some(Expression::ArrowCall { function, arguments: columns.into_iter().map(Expression::Column).collect() })
}

impl FinishAggregate {
    /// Returns the final values of `aggregate`; `takes` are the types of its states.
    pub(super) fn new(aggregate: &Arc<AggregateFunctionExpr>, argument_types: Vec<DataType>) -> Self {
        Self { id: function_id(), aggregate: Arc::clone(aggregate), argument_types }
    }
}

impl FinishFloatVariance {
    /// Returns the final values of `aggregate` from its [`Moments`].
    pub(super) fn new(aggregate: &Arc<AggregateFunctionExpr>) -> Self {
        Self { id: function_id(), aggregate: Arc::clone(aggregate) }
    }
}

impl FinishVariance {
    /// Returns the final values of `aggregate` from counts, sums (of the state `sum`) and sums of squares.
    pub(super) fn new(aggregate: &Arc<AggregateFunctionExpr>, sum: AggregateKind) -> Self {
        let sums = match sum {
            AggregateKind::Sum256 { .. } => DataType::LargeBinary,
            _ => DataType::Decimal128(38, 0),
        };
        let argument_types = [DataType::Int64, sums, DataType::LargeBinary];
        Self { id: function_id(), aggregate: Arc::clone(aggregate), argument_types }
    }
}

fn engine_error(error: DataFusionError) -> engine::Error {
    from_datafusion(error).into()
}

impl ArrowFunction for ArrowExpression {
    fn id(&self) -> u64 {
        self.id
    }

    fn argument_types(&self) -> &[DataType] {
        &self.argument_types
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        // Functions are also evaluated on NULLs of columns that are declared NOT NULL.
        let fields = self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new_with_options(schema, arguments.to_vec(), &options)?;
        self.expression.evaluate(&batch).and_then(|value| value.into_array(rows)).map_err(engine_error)
    }

    fn is_immutable(&self) -> bool {
        self.is_immutable
    }

    fn sql(&self) -> String {
        fmt_sql(self.expression.as_ref()).to_string()
    }

    fn digest(&self, arguments: &[Digest]) -> Option<Digest> {
        arrow_expression_digest(&self.expression, &self.schema, arguments)
    }
}

impl ArrowFunction for FinishAggregate {
    fn id(&self) -> u64 {
        self.id
    }

    fn argument_types(&self) -> &[DataType] {
        &self.argument_types
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let groups: Vec<usize> = (0..rows).collect();
        let mut accumulator = self.aggregate.create_groups_accumulator().map_err(engine_error)?;
        accumulator.merge_batch(arguments, &groups, rows).map_err(engine_error)?;
        accumulator.evaluate(EmitTo::All).map_err(engine_error)
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn sql(&self) -> String {
        self.aggregate.human_display().unwrap_or_else(|| self.aggregate.name()).to_owned()
    }
}

impl ArrowFunction for FinishVariance {
    fn id(&self) -> u64 {
        self.id
    }

    fn argument_types(&self) -> &[DataType] {
        &self.argument_types
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let [counts, sums, squares] = arguments else {
            return Err(engine::Error::Internal(
                "the final value of a numeric variance was computed without its count and sums",
            ));
        };
        let wide = |sums: &ArrayRef| {
            let sums = match sums.as_primitive_opt::<Decimal128Type>() {
                Some(sums) => Decimal256Array::from_iter_values(sums.values().iter().map(|sum| i256::from_i128(*sum))),
                None => Decimal256Array::from_iter_values(sums256_from_binary(sums)?),
            };
            Ok::<ArrayRef, engine::Error>(Arc::new(sums.with_data_type(DataType::Decimal256(76, 0))))
        };
        let groups: Vec<usize> = (0..rows).collect();
        let mut accumulator = self.aggregate.create_groups_accumulator().map_err(engine_error)?;
        let states = [Arc::clone(counts), wide(sums)?, wide(squares)?];
        accumulator.merge_batch(&states, &groups, rows).map_err(engine_error)?;
        accumulator.evaluate(EmitTo::All).map_err(engine_error)
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn sql(&self) -> String {
        self.aggregate.human_display().unwrap_or_else(|| self.aggregate.name()).to_owned()
    }
}

impl ArrowFunction for FinishFloatVariance {
    fn id(&self) -> u64 {
        self.id
    }

    fn argument_types(&self) -> &[DataType] {
        &[DataType::Binary]
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let [moments] = arguments else {
            return Err(engine::Error::Internal(
                "the final value of a float8 variance was computed without its moments",
            ));
        };
        let value = |moments: &Moments| {
            let mut accumulator = self.aggregate.create_accumulator()?;
            let one = |value: f64| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
            let count = Arc::new(Int64Array::from(vec![moments.count]));
            accumulator.merge_batch(&[count, one(moments.mean), one(moments.squared_deviations)])?;
            accumulator.evaluate()
        };
        if rows == 0 {
            return Ok(new_empty_array(self.aggregate.field().data_type()));
        }
        let values =
            Moments::from_array(moments)?.iter().map(value).collect::<Result<Vec<_>, _>>().map_err(engine_error)?;
        ScalarValue::iter_to_array(values).map_err(engine_error)
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn sql(&self) -> String {
        self.aggregate.human_display().unwrap_or_else(|| self.aggregate.name()).to_owned()
    }
}
