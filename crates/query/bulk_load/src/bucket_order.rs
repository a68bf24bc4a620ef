//! DISTRIBUTE ON: sorts rows by bucket before they are cut into shards.
//!
//! Large loads get shards with few buckets each; in a small shard, each bucket is one contiguous range.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt8Array, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use catalog::{SortColumn, Table, TableOrder};
use datafusion::common::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use functions::error::{from_datafusion, to_datafusion};
use futures::StreamExt;
use scan::{BucketAssigner, row_locator_columns};
use types::{SqlError, SqlResult};

use super::hilbert_order::{SingleUseStream, plan_hilbert_order};
use super::sort_plan::{sort_and_merge, sort_key};

const BUCKET: &str = "bucket";
const INPUT_POSITION: &str = "place in the input";
/// Bits of a row's ordinal in the input-position key; the bits above hold the number of its stream.
const ORDINAL_BITS: u32 = 40;

/// Plans a sort of `rows` by bucket, then by the table's order, then by arrival, to one stream.
///
/// Sorts that exceed memory spill.
pub(super) async fn plan_bucket_order(
    table: &Arc<Table>,
    bucketing: BucketAssigner,
    rows: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let (rows, order) = match &table.order {
        TableOrder::None => (rows, Vec::new()),
        TableOrder::Sort(columns) => (rows, columns.clone()),
        // Sorted along their curve already: the input position keeps that order within a bucket.
        TableOrder::Cluster(columns) if 1 < columns.len() => {
            (plan_hilbert_order(table, columns, rows, task).await?, Vec::new())
        }
        TableOrder::Cluster(columns) => {
            let ascending = |column| SortColumn { column, descending: false, nulls_first: false };
            (rows, columns.iter().copied().map(ascending).collect())
        }
    };
    let schema = rows.schema();
    let keyed = append_key_fields(&schema);
    let bucketing = Arc::new(bucketing);
    let inputs = execute_stream_partitioned(rows, Arc::clone(task)).map_err(from_datafusion)?;
    let leaf = |(number, input): (u64, SendableRecordBatchStream)| -> Arc<dyn PartitionStream> {
        let (mut place, bucketing, schema) = (number << ORDINAL_BITS, Arc::clone(&bucketing), Arc::clone(&keyed));
        let add = move |batch: DfResult<RecordBatch>| add_keys(&batch?, &bucketing, &mut place, &schema);
        Arc::new(SingleUseStream::new(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&keyed), input.map(add)))))
    };
    let leaves = (0..).zip(inputs).map(leaf).collect();
    let leaf = StreamingTableExec::try_new(Arc::clone(&keyed), leaves, None, [], false, None);
    let rows: Arc<dyn ExecutionPlan> = Arc::new(leaf.map_err(from_datafusion)?);

    let bucket: Arc<dyn PhysicalExpr> = Arc::new(Column::new(BUCKET, schema.fields().len()));
    let place: Arc<dyn PhysicalExpr> = match schema.index_of(&row_locator_columns()[1].name) {
        // Rows that are moved have a position in their shard already: it keeps their order.
        Ok(at) => Arc::new(Column::new(schema.field(at).name(), at)),
        Err(_) => Arc::new(Column::new(INPUT_POSITION, schema.fields().len() + 1)),
    };
    let mut keys = vec![PhysicalSortExpr::new(bucket, SortOptions::default())];
    for SortColumn { column, descending, nulls_first } in order {
        keys.push(sort_key(table, column, SortOptions { descending, nulls_first })?);
    }
    keys.push(PhysicalSortExpr::new(place, SortOptions::default()));
    let keys = LexOrdering::new(keys).expect("the sort keys include the bucket");
    let sorted = sort_and_merge(keys, rows);
    let table_columns = schema.fields().iter().enumerate().map(|(index, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), index)),
        alias: field.name().clone(),
    });
    Ok(Arc::new(ProjectionExec::try_new(table_columns.collect::<Vec<_>>(), sorted).map_err(from_datafusion)?))
}

/// Appends the bucket and the input position to a schema.
fn append_key_fields(schema: &Schema) -> SchemaRef {
    let keys = [Field::new(BUCKET, DataType::UInt8, false), Field::new(INPUT_POSITION, DataType::UInt64, false)];
    Arc::new(Schema::new(schema.fields().iter().cloned().chain(keys.map(Arc::new)).collect::<Vec<_>>()))
}

/// Appends each row's bucket and input position as last columns.
fn add_keys(batch: &RecordBatch, by: &BucketAssigner, place: &mut u64, schema: &SchemaRef) -> DfResult<RecordBatch> {
    let buckets = UInt8Array::from(by.assign_buckets(batch).map_err(to_datafusion)?);
    let start = *place;
    *place += batch.num_rows() as u64;
    let keys: [ArrayRef; 2] = [Arc::new(buckets), Arc::new(UInt64Array::from_iter_values(start..*place))];
    let columns = batch.columns().iter().cloned().chain(keys).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| {
        to_datafusion(SqlError::internal(format!(
            "could not add bucket and order columns to a batch of a load: {error}"
        )))
    })
}
