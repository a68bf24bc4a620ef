//! Operator that expands rows by series.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Int32Type, Int64Type, IntervalMonthDayNanoType, SchemaRef,
    TimestampMicrosecondType,
};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use functions::error::to_datafusion;
use functions::series::{Kind, Walk};
use futures::{StreamExt, stream};
use types::{Condition, Interval, SqlError};

/// Operator that expands each input row to as many rows as its longest series has values.
#[derive(Debug)]
pub(crate) struct ProjectSetExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Vec<Column>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

/// Output column.
#[derive(Debug, Clone)]
pub enum Column {
    /// Value of the input row.
    Passed(Arc<dyn PhysicalExpr>),
    /// Values from the first argument to the second, in steps of the third.
    Series { kind: Kind, args: Vec<Arc<dyn PhysicalExpr>> },
    /// Number of the output row among those of its input row, from 1 (WITH ORDINALITY).
    Ordinal,
}

impl Column {
    fn exprs(&self) -> &[Arc<dyn PhysicalExpr>] {
        match self {
            Column::Passed(expr) => std::slice::from_ref(expr),
            Column::Series { args, .. } => args,
            Column::Ordinal => &[],
        }
    }
}

impl ProjectSetExec {
    /// Returns its output columns, in order.
    #[must_use]
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Creates the operator over `input`.
    #[must_use]
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, columns: Vec<Column>, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            input.output_partitioning().clone(),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        Self { input, columns, schema, properties }
    }
}

impl DisplayAs for ProjectSetExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectSetExec")
    }
}

impl ExecutionPlan for ProjectSetExec {
    fn name(&self) -> &'static str {
        "ProjectSetExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("ProjectSetExec needs one input") };
        Ok(Arc::new(Self::new(input, self.columns.clone(), Arc::clone(&self.schema))))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.columns.iter().flat_map(Column::exprs) {
            if visit(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = Rows {
            input: self.input.execute(partition, Arc::clone(&context))?,
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            batch_rows: context.session_config().batch_size(),
            current: None,
        };
        let batches = stream::try_unfold(rows, async |mut rows| Ok(rows.next().await?.map(|batch| (batch, rows))));
        let batches = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), Box::pin(batches));
        Ok(Box::pin(cooperative(batches)))
    }
}

/// Execution state of one partition.
struct Rows {
    input: SendableRecordBatchStream,
    columns: Vec<Column>,
    schema: SchemaRef,
    batch_rows: usize,
    current: Option<Current>,
}

/// Input batch whose rows are being expanded.
struct Current {
    rows: usize,
    /// Values of each column's expressions over the batch.
    values: Vec<Vec<ArrayRef>>,
    /// Row whose series are being computed.
    row: usize,
    /// Iterators over the series of the row, one per series column; `None` if an argument is NULL.
    walks: Option<Vec<Option<Walk>>>,
    /// Number of output rows that the row has given so far.
    made: usize,
}

/// Output batch under construction.
#[derive(Default)]
struct Made {
    /// Input row of each output row.
    from: Vec<u32>,
    ordinals: Vec<i128>,
    /// Values of each series, with their validity.
    series: Vec<(Vec<i128>, Vec<bool>)>,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current {
                let made = current.make(&self.columns, self.batch_rows)?;
                if !made.from.is_empty() {
                    return current.batch(made, &self.columns, &self.schema).map(Some);
                }
                self.current = None;
            }
            let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
            let values = self.columns.iter().map(|column| {
                column.exprs().iter().map(|expr| expr.evaluate(&batch)?.into_array(batch.num_rows())).collect()
            });
            let values = values.collect::<Result<_>>()?;
            self.current = Some(Current { rows: batch.num_rows(), values, row: 0, walks: None, made: 0 });
        }
    }
}

impl Current {
    /// Computes the next output rows, at most `limit`.
    fn make(&mut self, columns: &[Column], limit: usize) -> Result<Made> {
        let series = columns.iter().filter(|column| matches!(column, Column::Series { .. })).count();
        let mut made = Made { series: vec![Default::default(); series], ..Made::default() };
        while self.row < self.rows && made.from.len() < limit {
            let before = made.from.len();
            let mut walks = match self.walks.take() {
                Some(walks) => walks,
                None => self.walks(columns)?,
            };
            let mut count = 0;
            for (walk, (values, _)) in walks.iter_mut().zip(&mut made.series) {
                if let Some(walk) = walk {
                    walk.fill(limit - before, values).map_err(to_datafusion)?;
                }
                count = count.max(values.len() - before);
            }
            for (values, valid) in &mut made.series {
                valid.resize(values.len(), true);
                values.resize(before + count, 0);
                valid.resize(before + count, false);
            }
            let row = u32::try_from(self.row).map_err(|_| to_datafusion(SqlError::internal("input batch too long")))?;
            made.from.resize(before + count, row);
            made.ordinals.extend((self.made..self.made + count).map(|at| at as i128 + 1));
            if made.from.len() < limit {
                (self.row, self.made) = (self.row + 1, 0);
            } else {
                (self.walks, self.made) = (Some(walks), self.made + count);
            }
        }
        Ok(made)
    }

    fn walks(&self, columns: &[Column]) -> Result<Vec<Option<Walk>>> {
        let of_column = |(column, args): (&Column, &Vec<ArrayRef>)| match column {
            Column::Series { kind, .. } => Some(walk(*kind, args, self.row).map_err(to_datafusion)),
            _ => None,
        };
        columns.iter().zip(&self.values).filter_map(of_column).collect()
    }

    fn batch(&self, made: Made, columns: &[Column], schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = made.from.len();
        let from = UInt32Array::from(made.from);
        let mut series = made.series.into_iter();
        let mut arrays = Vec::with_capacity(columns.len());
        for ((column, values), field) in columns.iter().zip(&self.values).zip(schema.fields()) {
            arrays.push(match column {
                Column::Passed(_) => take(&values[0], &from, None)?,
                Column::Series { .. } => match series.next() {
                    Some((values, valid)) => array(&values, valid, field.data_type())?,
                    None => return internal_err!("ProjectSetExec: a series column has no values"),
                },
                Column::Ordinal => array(&made.ordinals, vec![true; rows], field.data_type())?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

/// Starts the series of one row; `None` if an argument is NULL.
fn walk(kind: Kind, args: &[ArrayRef], row: usize) -> types::SqlResult<Option<Walk>> {
    if args.iter().any(|arg| arg.is_null(row)) {
        return Ok(None);
    }
    let zone = match kind {
        Kind::TimestampTz(zone) => Some(zone),
        _ => None,
    };
    match (kind, args) {
        (Kind::Timestamp | Kind::TimestampTz(_), [first, last, step]) => {
            let at = |array: &ArrayRef| array.as_primitive::<TimestampMicrosecondType>().value(row);
            let step = step.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let step = Interval::from_month_day_nano(step.months, step.days, step.nanoseconds);
            Walk::times(at(first), at(last), step, zone).map(Some)
        }
        (_, [first, last, step @ ..]) => {
            let one = match kind {
                Kind::Numeric { scale, .. } => types::numeric::power_of_ten(scale),
                _ => 1,
            };
            let step = step.first().map_or(one, |step| number(step, row));
            Walk::numbers(number(first, row), number(last, row), step).map(Some)
        }
        _ => Err(SqlError::internal("ProjectSetExec: a series needs a first and a last value")),
    }
}

fn number(array: &ArrayRef, row: usize) -> i128 {
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        _ => array.as_primitive::<Decimal128Type>().value(row),
    }
}

fn array(values: &[i128], valid: Vec<bool>, data_type: &DataType) -> Result<ArrayRef> {
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    match data_type {
        DataType::Int32 => typed::<Int32Type>(values, nulls, data_type),
        DataType::Int64 => typed::<Int64Type>(values, nulls, data_type),
        DataType::Timestamp(..) => typed::<TimestampMicrosecondType>(values, nulls, data_type),
        DataType::Decimal128(..) => typed::<Decimal128Type>(values, nulls, data_type),
        other => internal_err!("ProjectSetExec: a series cannot have type {other}"),
    }
}

fn typed<T>(values: &[i128], nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let narrow = |value: &i128| T::Native::try_from(*value).map_err(|_| out_of_range());
    let values: ScalarBuffer<T::Native> = values.iter().map(narrow).collect::<Result<Vec<_>>>()?.into();
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls)?.with_data_type(data_type.clone())))
}

fn out_of_range() -> DataFusionError {
    to_datafusion(SqlError::new(Condition::NumericValueOutOfRange, "integer out of range"))
}
