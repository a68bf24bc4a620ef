//! CLUSTER ON: sorts rows by several columns at once, along a Hilbert curve through the ranks of their values.
//!
//! Ranks give all columns equal weight, whatever the distribution of their values; quantiles are learnt from the first
//! rows of the load.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};
use catalog::Table;
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use functions::error::from_datafusion;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use shards::RowSample;
use storage_error::from_shards;
use types::{ColumnId, SqlError, SqlResult};

use super::hilbert_curve;
use super::sort_plan::{column_position, sort_and_merge, sort_key};

/// Rows that are buffered to learn quantiles before the first is written.
const BUFFERED_ROWS_MAX: usize = 1 << 20;
/// Bytes after which buffering stops earlier.
const BUFFERED_BYTES_MAX: usize = 64 << 20;
/// Rows of the sample that quantiles are computed from.
const SAMPLE_ROWS: usize = 16_384;
/// Maximum bits of a rank; fewer with many columns, so that all ranks together fit the key.
const RANK_BITS_MAX: u32 = 10;
const KEY_BITS: u32 = 64;
const KEY_NAME: &str = "cluster key";

/// Plans a sort of `rows` along the Hilbert curve of `columns`, to one stream; reads the first rows to learn quantiles.
pub(super) async fn plan_hilbert_order(
    table: &Arc<Table>,
    columns: &[ColumnId],
    rows: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let positions = columns.iter().map(|column| column_position(table, *column)).collect::<SqlResult<Vec<_>>>()?;
    let mut stream = execute_stream(rows, Arc::clone(task)).map_err(from_datafusion)?;
    let mut first = Vec::new();
    let (mut seen_rows, mut seen_bytes) = (0, 0);
    while seen_rows < BUFFERED_ROWS_MAX && seen_bytes < BUFFERED_BYTES_MAX {
        let Some(batch) = stream.next().await else { break };
        let batch = batch.map_err(from_datafusion)?;
        seen_rows += batch.num_rows();
        seen_bytes += batch.get_array_memory_size();
        first.push(batch);
    }
    let ranks = ClusterQuantiles::from_sample(&schema, &positions, &first)?;
    let keyed_schema = append_key_field(&schema);
    let keyed = {
        let schema = Arc::clone(&keyed_schema);
        let all = stream::iter(first.into_iter().map(Ok)).chain(stream);
        all.map(move |batch| Ok(ranks.add_key(&batch?, &schema)?))
    };
    let keyed = RecordBatchStreamAdapter::new(Arc::clone(&keyed_schema), keyed);
    let leaf = SingleUseStream::new(Box::pin(keyed));
    let leaf = StreamingTableExec::try_new(keyed_schema, vec![Arc::new(leaf)], None, [], false, None);
    let leaf = Arc::new(leaf.map_err(from_datafusion)?);
    let key = Arc::new(Column::new(KEY_NAME, schema.fields().len()));
    let mut keys = vec![PhysicalSortExpr::new(key, SortOptions::default())];
    for column in columns {
        keys.push(sort_key(table, *column, SortOptions { descending: false, nulls_first: false })?);
    }
    let sorted = sort_and_merge(LexOrdering::new(keys).expect("the sort keys include the cluster key"), leaf);
    let table_columns = schema.fields().iter().enumerate().map(|(index, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), index)),
        alias: field.name().clone(),
    });
    Ok(Arc::new(ProjectionExec::try_new(table_columns.collect::<Vec<_>>(), sorted).map_err(from_datafusion)?))
}

/// Appends the cluster key to a schema.
fn append_key_field(schema: &Schema) -> SchemaRef {
    let key = Arc::new(Field::new(KEY_NAME, DataType::UInt64, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([key]).collect::<Vec<_>>()))
}

/// Quantiles of all cluster columns.
struct ClusterQuantiles {
    columns: Vec<ColumnQuantiles>,
    bits: u32,
}

/// Quantiles of one column: values with about equally many rows between them, ascending.
struct ColumnQuantiles {
    position: usize,
    converter: RowConverter,
    bounds: Vec<OwnedRow>,
}

impl ClusterQuantiles {
    /// Learns the quantiles of the columns at `positions` from `batches`.
    fn from_sample(schema: &SchemaRef, positions: &[usize], batches: &[RecordBatch]) -> SqlResult<Self> {
        let projected = Arc::new(schema.project(positions).map_err(sort_error)?);
        let mut sample = RowSample::new(projected, SAMPLE_ROWS);
        for batch in batches {
            sample.add(&batch.project(positions).map_err(sort_error)?).map_err(from_shards)?;
        }
        let sample = sample.finish().map_err(from_shards)?;
        let count = u32::try_from(positions.len()).expect("a table has at most 1,600 columns");
        let bits = (KEY_BITS / count).clamp(1, RANK_BITS_MAX);
        let columns = positions.iter().zip(sample.columns());
        let columns =
            columns.map(|(position, values)| ColumnQuantiles::from_sample(*position, values, bits).map_err(sort_error));
        Ok(Self { columns: columns.collect::<SqlResult<_>>()?, bits })
    }

    /// Appends each row's position on the curve as last column.
    fn add_key(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        // A coordinate needs at least one bit of the key.
        let columns = &self.columns[..self.columns.len().min(KEY_BITS as usize)];
        let ranks = columns.iter().map(|column| column.ranks(batch, self.bits)).collect::<Result<Vec<_>, _>>()?;
        let mut point = vec![0; ranks.len()];
        let keys = (0..batch.num_rows()).map(|row| {
            point.iter_mut().zip(&ranks).for_each(|(coordinate, ranks)| *coordinate = ranks[row]);
            hilbert_curve::curve_position(&mut point, self.bits)
        });
        let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values(keys));
        RecordBatch::try_new(Arc::clone(schema), batch.columns().iter().cloned().chain([keys]).collect())
    }
}

impl ColumnQuantiles {
    fn from_sample(position: usize, values: &ArrayRef, bits: u32) -> Result<Self, ArrowError> {
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(values.data_type().clone(), options)])?;
        let rows = converter.convert_columns(std::slice::from_ref(values))?;
        let mut sorted: Vec<_> = rows.iter().collect();
        sorted.sort_unstable();
        let count = sorted.len().min((1 << bits) - 1);
        // `count` bounds separate `count + 1` parts of equal size.
        let mut bounds: Vec<_> = (1..=count).map(|index| sorted[index * sorted.len() / (count + 1)].owned()).collect();
        bounds.dedup();
        Ok(Self { position, converter, bounds })
    }

    /// Returns the rank of each row: the fraction of values that are not greater, scaled to 0 … 2^`bits` - 1.
    fn ranks(&self, batch: &RecordBatch, bits: u32) -> Result<Vec<u32>, ArrowError> {
        let rows = self.converter.convert_columns(std::slice::from_ref(batch.column(self.position)))?;
        let parts = self.bounds.len() + 1;
        let rank = |row| {
            let below = self.bounds.partition_point(|bound| bound.row() <= row);
            u32::try_from((below << bits) / parts).expect("a rank is below 2^bits")
        };
        Ok(rows.iter().map(rank).collect())
    }
}

/// Leaf of a plan over a stream that can be read only once.
pub(super) struct SingleUseStream {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl SingleUseStream {
    pub(super) fn new(stream: SendableRecordBatchStream) -> Self {
        Self { schema: stream.schema(), stream: Mutex::new(Some(stream)) }
    }
}

impl fmt::Debug for SingleUseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleUseStream")
    }
}

impl PartitionStream for SingleUseStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _task: Arc<TaskContext>) -> SendableRecordBatchStream {
        self.stream.lock().take().unwrap_or_else(|| {
            let failure = stream::once(async { internal_err!("the rows of a load were read twice") as DfResult<_> });
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failure))
        })
    }
}

fn sort_error(error: ArrowError) -> SqlError {
    SqlError::internal(format!("could not sort the rows of a load by their cluster key: {error}"))
}
