//! What the engine has no loop for, over Arrow's arrays.

use std::sync::{Arc, OnceLock};

use arrow::array::{
    ArrayRef, Decimal256Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, new_empty_array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, utils::collect_columns};
use datafusion::physical_expr_common::physical_expr::{fmt_sql, is_volatile};
use engine::Digest;
use engine::aggregate::{Moments, sums256_from_binary};
use engine::expression::{Expression, Fallback, Foreign, function_id};
use functions::error::from_datafusion;

use crate::reuse::foreign_digest;

/// An expression as a function of the columns that it reads.
#[derive(Debug)]
pub(super) struct ForeignExpression {
    id: u64,
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    takes: Vec<DataType>,
    is_immutable: bool,
}

/// A planned expression over columns of `schema`, which evaluates batches that its compiled form cannot.
#[derive(Debug)]
pub(super) struct PlannedExpression {
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// The call, made when a batch first needs it: its tables of values are remembered by its number.
    call: OnceLock<Option<Expression>>,
}

/// The values of an aggregate out of its states.
#[derive(Debug)]
pub(super) struct FinishAggregate {
    id: u64,
    aggregate: Arc<AggregateFunctionExpr>,
    takes: Vec<DataType>,
}

/// The values of an aggregate that says how floats are spread.
#[derive(Debug)]
pub(super) struct FinishMoments {
    id: u64,
    aggregate: Arc<AggregateFunctionExpr>,
}

/// The values of an aggregate that says how exact numbers are spread.
#[derive(Debug)]
pub(super) struct FinishSpread {
    id: u64,
    aggregate: Arc<AggregateFunctionExpr>,
}

impl PlannedExpression {
    pub(super) fn new(expression: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Self {
        Self { expression: Arc::clone(expression), schema: Arc::clone(schema), call: OnceLock::new() }
    }
}

impl Fallback for PlannedExpression {
    fn expression(&self) -> engine::Result<Expression> {
        let call = self.call.get_or_init(|| call(&self.expression, &self.schema));
        call.clone().ok_or(engine::Error::Form("an expression without a form over arrays"))
    }
}

/// A call of the expression, which is over rows of `schema`; `None` where a column that it reads has no form in the engine.
pub(super) fn call(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expression> {
    let result = expression.data_type(schema).ok()?;
    if !engine::arrow_form::has_form(&result) {
        return None;
    }
    let mut columns: Vec<usize> = collect_columns(expression).iter().map(Column::index).collect();
    columns.sort_unstable();
    columns.dedup();
    let fields: Vec<Field> = columns.iter().map(|column| schema.field(*column).clone()).collect();
    let takes: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
    if !takes.iter().all(engine::arrow_form::has_form) {
        return None;
    }
    let moved = Arc::clone(expression).transform(|part| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        let at = columns.binary_search(&column.index()).expect("collected above");
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>))
    });
    let expression = moved.ok()?.data;
    let is_immutable = !is_volatile(&expression);
    let schema = Arc::new(Schema::new(fields));
    let function = Arc::new(ForeignExpression { id: function_id(), expression, schema, takes, is_immutable });
    Some(Expression::Foreign { function, arguments: columns.into_iter().map(Expression::Column).collect() })
}

impl FinishAggregate {
    /// The aggregate's values; its states are of the types `takes`.
    pub(super) fn new(aggregate: &Arc<AggregateFunctionExpr>, takes: Vec<DataType>) -> Self {
        Self { id: function_id(), aggregate: Arc::clone(aggregate), takes }
    }
}

impl FinishMoments {
    /// The aggregate's values out of its [`Moments`].
    pub(super) fn new(aggregate: &Arc<AggregateFunctionExpr>) -> Self {
        Self { id: function_id(), aggregate: Arc::clone(aggregate) }
    }
}

impl FinishSpread {
    /// The aggregate's values out of counts, sums and sums of squares.
    pub(super) fn new(aggregate: &Arc<AggregateFunctionExpr>) -> Self {
        Self { id: function_id(), aggregate: Arc::clone(aggregate) }
    }
}

fn failed(error: DataFusionError) -> engine::Error {
    from_datafusion(error).into()
}

impl Foreign for ForeignExpression {
    fn id(&self) -> u64 {
        self.id
    }

    fn takes(&self) -> &[DataType] {
        &self.takes
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        // A domain has a NULL, also of columns that have none.
        let fields = self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new_with_options(schema, arguments.to_vec(), &options)?;
        self.expression.evaluate(&batch).and_then(|value| value.into_array(rows)).map_err(failed)
    }

    fn is_immutable(&self) -> bool {
        self.is_immutable
    }

    fn sql(&self) -> String {
        fmt_sql(self.expression.as_ref()).to_string()
    }

    fn digest(&self, arguments: &[Digest]) -> Option<Digest> {
        foreign_digest(&self.expression, &self.schema, arguments)
    }
}

impl Foreign for FinishAggregate {
    fn id(&self) -> u64 {
        self.id
    }

    fn takes(&self) -> &[DataType] {
        &self.takes
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let groups: Vec<usize> = (0..rows).collect();
        let mut accumulator = self.aggregate.create_groups_accumulator().map_err(failed)?;
        accumulator.merge_batch(arguments, &groups, rows).map_err(failed)?;
        accumulator.evaluate(EmitTo::All).map_err(failed)
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn sql(&self) -> String {
        self.aggregate.human_display().unwrap_or_else(|| self.aggregate.name()).to_owned()
    }
}

impl Foreign for FinishSpread {
    fn id(&self) -> u64 {
        self.id
    }

    fn takes(&self) -> &[DataType] {
        &[DataType::Int64, DataType::LargeBinary, DataType::LargeBinary]
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let [counts, sums, squares] = arguments else { return Err(engine::Error::Form("counts and sums")) };
        let wide = |sums: &ArrayRef| {
            let sums = Decimal256Array::from_iter_values(sums256_from_binary(sums)?)
                .with_data_type(DataType::Decimal256(76, 0));
            Ok::<ArrayRef, engine::Error>(Arc::new(sums))
        };
        let groups: Vec<usize> = (0..rows).collect();
        let mut accumulator = self.aggregate.create_groups_accumulator().map_err(failed)?;
        let states = [Arc::clone(counts), wide(sums)?, wide(squares)?];
        accumulator.merge_batch(&states, &groups, rows).map_err(failed)?;
        accumulator.evaluate(EmitTo::All).map_err(failed)
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn sql(&self) -> String {
        self.aggregate.human_display().unwrap_or_else(|| self.aggregate.name()).to_owned()
    }
}

impl Foreign for FinishMoments {
    fn id(&self) -> u64 {
        self.id
    }

    fn takes(&self) -> &[DataType] {
        &[DataType::Binary]
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> engine::Result<ArrayRef> {
        let [moments] = arguments else { return Err(engine::Error::Form("moments")) };
        let value = |moments: &Moments| {
            let mut accumulator = self.aggregate.create_accumulator()?;
            let one = |value: f64| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
            let count = Arc::new(Int64Array::from(vec![moments.count]));
            accumulator.merge_batch(&[count, one(moments.mean), one(moments.squares)])?;
            accumulator.evaluate()
        };
        if rows == 0 {
            return Ok(new_empty_array(self.aggregate.field().data_type()));
        }
        let values = Moments::of_array(moments)?.iter().map(value).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        ScalarValue::iter_to_array(values).map_err(failed)
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn sql(&self) -> String {
        self.aggregate.human_display().unwrap_or_else(|| self.aggregate.name()).to_owned()
    }
}
