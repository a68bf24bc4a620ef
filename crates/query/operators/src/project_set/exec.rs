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
use functions::series::{SeriesIter, SeriesType};
use futures::{StreamExt, stream};
use types::{Condition, Interval, SqlError};

/// Operator that expands each input row to as many rows as its longest series has values.
#[derive(Debug)]
pub(crate) struct ProjectSetExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Vec<ProjectSetColumn>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

/// Output column.
#[derive(Debug, Clone)]
pub enum ProjectSetColumn {
    /// Value of the input row.
    Passed(Arc<dyn PhysicalExpr>),
    /// Values from the first argument to the second, in steps of the third.
    Series { kind: SeriesType, args: Vec<Arc<dyn PhysicalExpr>> },
    /// Number of the output row among those of its input row, from 1 (WITH ORDINALITY).
    Ordinal,
}

impl ProjectSetColumn {
    fn exprs(&self) -> &[Arc<dyn PhysicalExpr>] {
        match self {
            ProjectSetColumn::Passed(expr) => std::slice::from_ref(expr),
            ProjectSetColumn::Series { args, .. } => args,
            ProjectSetColumn::Ordinal => &[],
        }
    }
}

impl ProjectSetExec {
    /// Returns its output columns, in order.
    #[must_use]
    pub(crate) fn columns(&self) -> &[ProjectSetColumn] {
        &self.columns
    }

    /// Creates the operator over `input`.
    #[must_use]
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, columns: Vec<ProjectSetColumn>, schema: SchemaRef) -> Self {
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
        for expr in self.columns.iter().flat_map(ProjectSetColumn::exprs) {
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
        let rows = ProjectSetStream {
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
struct ProjectSetStream {
    input: SendableRecordBatchStream,
    columns: Vec<ProjectSetColumn>,
    schema: SchemaRef,
    batch_rows: usize,
    current: Option<InputBatch>,
}

/// Input batch whose rows are being expanded.
struct InputBatch {
    rows: usize,
    /// Values of each column's expressions over the batch.
    values: Vec<Vec<ArrayRef>>,
    /// Row whose series are being computed.
    row: usize,
    /// Iterators over the series of the row, one per series column; `None` if an argument is NULL.
    series_iterators: Option<Vec<Option<SeriesIter>>>,
    /// Number of output rows that the row has given so far.
    rows_produced: usize,
}

/// Output batch under construction.
#[derive(Default)]
struct OutputBatch {
    /// Input row of each output row.
    input_rows: Vec<u32>,
    ordinals: Vec<i128>,
    /// Values of each series, with their validity.
    series: Vec<(Vec<i128>, Vec<bool>)>,
}

impl ProjectSetStream {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current {
                let made = current.compute_rows(&self.columns, self.batch_rows)?;
                if !made.input_rows.is_empty() {
                    return current.finish_batch(made, &self.columns, &self.schema).map(Some);
                }
                self.current = None;
            }
            let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
            let values = self.columns.iter().map(|column| {
                column.exprs().iter().map(|expr| expr.evaluate(&batch)?.into_array(batch.num_rows())).collect()
            });
            let values = values.collect::<Result<_>>()?;
            self.current =
                Some(InputBatch { rows: batch.num_rows(), values, row: 0, series_iterators: None, rows_produced: 0 });
        }
    }
}

impl InputBatch {
    /// Computes the next output rows, at most `limit`.
    fn compute_rows(&mut self, columns: &[ProjectSetColumn], limit: usize) -> Result<OutputBatch> {
        let series = columns.iter().filter(|column| matches!(column, ProjectSetColumn::Series { .. })).count();
        let mut made = OutputBatch { series: vec![Default::default(); series], ..OutputBatch::default() };
        while self.row < self.rows && made.input_rows.len() < limit {
            let before = made.input_rows.len();
            let mut series_iterators = match self.series_iterators.take() {
                Some(series_iterators) => series_iterators,
                None => self.start_series(columns)?,
            };
            let mut count = 0;
            for (walk, (values, _)) in series_iterators.iter_mut().zip(&mut made.series) {
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
            let row = u32::try_from(self.row).map_err(|_| {
                to_datafusion(SqlError::internal("an input batch of a set-returning function has too many rows"))
            })?;
            made.input_rows.resize(before + count, row);
            made.ordinals.extend((self.rows_produced..self.rows_produced + count).map(|at| at as i128 + 1));
            if made.input_rows.len() < limit {
                (self.row, self.rows_produced) = (self.row + 1, 0);
            } else {
                (self.series_iterators, self.rows_produced) = (Some(series_iterators), self.rows_produced + count);
            }
        }
        Ok(made)
    }

    fn start_series(&self, columns: &[ProjectSetColumn]) -> Result<Vec<Option<SeriesIter>>> {
        let of_column = |(column, args): (&ProjectSetColumn, &Vec<ArrayRef>)| match column {
            ProjectSetColumn::Series { kind, .. } => {
                Some(start_series_iterator(*kind, args, self.row).map_err(to_datafusion))
            }
            _ => None,
        };
        columns.iter().zip(&self.values).filter_map(of_column).collect()
    }

    fn finish_batch(&self, made: OutputBatch, columns: &[ProjectSetColumn], schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = made.input_rows.len();
        let from = UInt32Array::from(made.input_rows);
        let mut series = made.series.into_iter();
        let mut arrays = Vec::with_capacity(columns.len());
        for ((column, values), field) in columns.iter().zip(&self.values).zip(schema.fields()) {
            arrays.push(match column {
                ProjectSetColumn::Passed(_) => take(&values[0], &from, None)?,
                ProjectSetColumn::Series { .. } => match series.next() {
                    Some((values, valid)) => new_array(&values, valid, field.data_type())?,
                    None => return internal_err!("ProjectSetExec: a series column has no values"),
                },
                ProjectSetColumn::Ordinal => new_array(&made.ordinals, vec![true; rows], field.data_type())?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

/// Starts the series of one row; `None` if an argument is NULL.
fn start_series_iterator(kind: SeriesType, args: &[ArrayRef], row: usize) -> types::SqlResult<Option<SeriesIter>> {
    if args.iter().any(|arg| arg.is_null(row)) {
        return Ok(None);
    }
    let zone = match kind {
        SeriesType::TimestampTz(zone) => Some(zone),
        _ => None,
    };
    match (kind, args) {
        (SeriesType::Timestamp | SeriesType::TimestampTz(_), [first, last, step]) => {
            let at = |array: &ArrayRef| array.as_primitive::<TimestampMicrosecondType>().value(row);
            let step = step.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let step = Interval::from_month_day_nano(step.months, step.days, step.nanoseconds);
            SeriesIter::times(at(first), at(last), step, zone).map(Some)
        }
        (_, [first, last, step @ ..]) => {
            let one = match kind {
                SeriesType::Numeric { scale, .. } => types::numeric::power_of_ten(scale),
                _ => 1,
            };
            let step = step.first().map_or(one, |step| number(step, row));
            SeriesIter::numbers(number(first, row), number(last, row), step).map(Some)
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

fn new_array(values: &[i128], valid: Vec<bool>, data_type: &DataType) -> Result<ArrayRef> {
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    match data_type {
        DataType::Int32 => new_typed_array::<Int32Type>(values, nulls, data_type),
        DataType::Int64 => new_typed_array::<Int64Type>(values, nulls, data_type),
        DataType::Timestamp(..) => new_typed_array::<TimestampMicrosecondType>(values, nulls, data_type),
        DataType::Decimal128(..) => new_typed_array::<Decimal128Type>(values, nulls, data_type),
        other => internal_err!("ProjectSetExec: a series cannot have type {other}"),
    }
}

fn new_typed_array<T>(values: &[i128], nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef>
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
