//! One load: every stream of rows is cut into shards of its own; streams with too few rows share shards.

use std::sync::Arc;

use arrow::array::RecordBatch;
use catalog::{Change, Sample, Table};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use functions::error::from_datafusion;
use futures::StreamExt;
use objects::Objects;
use parking_lot::Mutex;
use rowstore::Tuple;
use scan::{BucketAssigner, column_defs, encode_table_rows, row_locator_columns};
use scheduler::in_same_query;
use shards::{ColumnDef, RowIds, RowSample, ShardMeta, ShardWriter, WriteOptions};
use storage_error::{from_shards, from_txn};
use tokio::task::JoinSet;
use txn::{RowChange, Transaction, UploadAnnouncer};
use types::{Random, ShardId, SqlError, SqlResult};

use super::shard_splitter::ShardSplitter;
use super::table_conversion::BatchConformer;
use super::{sort_plan, table_sample};

/// File size, in bytes, at which a shard ends and the next begins.
const SHARD_BYTES: u64 = 100 << 20;

/// Load into one table; shared by the tasks that write its shards.
pub struct Load {
    pub(super) table: Arc<Table>,
    pub(super) columns: Vec<ColumnDef>,
    pub(super) shard_bytes: u64,
    /// Rows up to which the load is staged as fresh rows instead of shards.
    pub(super) fresh_rows_max: usize,
    /// Bucketing of the rows; `None` if the table is not distributed on a key.
    pub(super) bucketing: Option<BucketAssigner>,
    objects: Objects,
    random: Arc<dyn Random>,
    /// Announcements of objects, which must live as long as objects are written: see [`Uploads`].
    uploads: UploadAnnouncer,
    sample: Mutex<RowSample>,
}

/// Result of a load, written but not yet staged.
pub struct LoadResult {
    table: Arc<Table>,
    rows: u64,
    shards: Vec<Arc<ShardMeta>>,
    /// All rows, if they are few and no shards were written.
    unflushed_rows: Vec<RecordBatch>,
    /// Random sample of the rows.
    sample: RecordBatch,
}

impl Load {
    pub(super) fn new(
        objects: Objects,
        random: Arc<dyn Random>,
        table: &Arc<Table>,
        transaction: &Transaction,
        fresh_rows_max: usize,
    ) -> Self {
        Self {
            fresh_rows_max,
            columns: column_defs(table),
            shard_bytes: SHARD_BYTES,
            bucketing: BucketAssigner::try_new(table),
            objects,
            random,
            uploads: transaction.uploads(),
            sample: Mutex::new(RowSample::new(table_sample::schema(table), Sample::ROW_COUNT_MAX)),
            table: Arc::clone(table),
        }
    }

    /// Makes the load accept rows with their ids in a column after those of the table.
    pub(super) fn with_ids(mut self) -> Self {
        let [row_id, _] = row_locator_columns();
        self.columns.push(row_id);
        self
    }

    /// Runs `operators` and writes all their rows in the table's order.
    ///
    /// # Errors
    /// Errors of the operators and of the storage; shards already written are deleted when the transaction ends.
    pub async fn run(self, operators: Arc<dyn ExecutionPlan>, task: Arc<TaskContext>) -> SqlResult<LoadResult> {
        let operators = sort_plan::plan_partitioned_order(&self.table, operators, &task).await?;
        let streams = execute_stream_partitioned(operators, Arc::clone(&task)).map_err(from_datafusion)?;
        let load = Arc::new(self);
        let mut portions = match <[_; 1]>::try_from(streams) {
            Ok([stream]) => vec![write_stream(Arc::clone(&load), stream).await?],
            Err(streams) => write_streams(&load, streams).await?,
        };
        let held: usize = portions.iter().flat_map(|portion| &portion.unwritten).map(RecordBatch::num_rows).sum();
        if held <= load.fresh_rows_max && portions.iter().all(|portion| portion.shards.is_empty()) {
            let fresh = portions.into_iter().flat_map(|portion| portion.unwritten).collect();
            let sample = RecordBatch::new_empty(table_sample::schema(&load.table));
            return Ok(LoadResult {
                table: Arc::clone(&load.table),
                rows: held as u64,
                shards: Vec::new(),
                unflushed_rows: fresh,
                sample,
            });
        }
        let mut shards: Vec<_> = portions.iter_mut().flat_map(|portion| std::mem::take(&mut portion.shards)).collect();
        let mut combined = ShardSplitter::for_all_rows(Arc::clone(&load));
        for batch in portions.into_iter().flat_map(|portion| portion.unwritten) {
            combined.push(batch).await?;
        }
        shards.extend(combined.finish().await?.shards);
        let load = Arc::into_inner(load)
            .ok_or_else(|| SqlError::internal("a write task of a load still runs after the load has ended"))?;
        let rows = shards.iter().map(|shard| shard.rows).sum();
        let sample = load.sample.into_inner().finish().map_err(from_shards)?;
        Ok(LoadResult { table: load.table, rows, shards, unflushed_rows: Vec::new(), sample })
    }

    /// Announces a new shard of the table and starts writing it.
    pub(super) async fn create_shard(&self) -> SqlResult<ShardWriter> {
        let id = ShardId(self.random.uuid());
        let object = format!("tables/{}/{id}.parquet", self.table.oid);
        self.uploads.announce(&object).await.map_err(from_txn)?;
        ShardWriter::create(&self.objects, id, &object, &self.columns, WriteOptions::default()).map_err(from_shards)
    }

    /// Adds rows to the load's sample.
    fn add_to_sample(&self, batch: &RecordBatch) -> SqlResult<()> {
        let mut sample = self.sample.lock();
        sample.add(&table_sample::with_sample_schema(batch, &self.table)?).map_err(from_shards)
    }
}

impl LoadResult {
    /// Stages the rows in the transaction, and returns their number.
    pub fn stage(self, transaction: &mut Transaction) -> SqlResult<u64> {
        if self.rows == 0 {
            return Ok(0);
        }
        if !self.unflushed_rows.is_empty() {
            let mut rows = Vec::new();
            for batch in &self.unflushed_rows {
                rows.extend(encode_table_rows(&self.table, batch.columns())?);
            }
            return stage_rows(transaction, &self.table, rows).map(|()| self.rows);
        }
        let mut next = transaction.allocate_row_ids(self.rows);
        let shards = self.shards.into_iter().map(|mut shard| {
            Arc::make_mut(&mut shard).row_ids = RowIds::From(next);
            next.0 += shard.rows;
            shard
        });
        let shards = shards.collect();
        let view = transaction.view();
        let sample =
            table_sample::next_sample(view.state.shards(self.table.oid), &self.sample, self.rows, &self.table)?;
        let change = Change::AddShards { table: self.table.oid, shards, sample };
        transaction.stage(vec![change]).map_err(from_txn)?;
        Ok(self.rows)
    }
}

/// Stages new rows as fresh rows.
///
/// # Errors
/// `54000` if a row, or all of them together, are too large.
pub fn stage_rows(transaction: &mut Transaction, table: &Table, rows: Vec<Tuple>) -> SqlResult<()> {
    let mut next = transaction.allocate_row_ids(rows.len() as u64);
    let changes = rows.into_iter().map(|tuple| {
        let id = next;
        next.0 += 1;
        RowChange { id, old_position: None, new_version: Some(tuple) }
    });
    transaction.write_rows(table.oid, changes).map_err(from_txn)
}

/// Result of writing one stream of rows.
pub struct StreamResult {
    /// Written shards, in order.
    pub shards: Vec<Arc<ShardMeta>>,
    /// All rows of the stream, unwritten, if they were too few for a shard.
    pub(super) unwritten: Vec<RecordBatch>,
}

/// Writes all streams in parallel and returns their portions in order. The first failure cancels the other streams.
async fn write_streams(load: &Arc<Load>, streams: Vec<SendableRecordBatchStream>) -> SqlResult<Vec<StreamResult>> {
    let mut tasks = JoinSet::new();
    for (index, stream) in streams.into_iter().enumerate() {
        let load = Arc::clone(load);
        tasks.spawn(in_same_query(async move { Ok::<_, SqlError>((index, write_stream(load, stream).await?)) }));
    }
    let mut portions = Vec::with_capacity(tasks.len());
    while let Some(ended) = tasks.join_next().await {
        portions.push(ended.map_err(|error| SqlError::internal(format!("a write task of a load failed: {error}")))??);
    }
    portions.sort_unstable_by_key(|(index, _)| *index);
    Ok(portions.into_iter().map(|(_, portion)| portion).collect())
}

/// Writes one stream.
async fn write_stream(load: Arc<Load>, mut stream: SendableRecordBatchStream) -> SqlResult<StreamResult> {
    let conform = BatchConformer::new(&load.table);
    let mut shards = ShardSplitter::for_stream(Arc::clone(&load));
    while let Some(batch) = stream.next().await {
        let batch = conform.conform(batch.map_err(from_datafusion)?)?;
        if 0 < batch.num_rows() {
            load.add_to_sample(&batch)?;
            shards.push(batch).await?;
        }
    }
    shards.finish().await
}
