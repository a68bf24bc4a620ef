//! Writes rows that already have ids to shards: the new versions of many changed rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema};
use bulk_load::{BatchConformer, ShardSplitter, plan_table_order};
use catalog::{Change, Table};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::execute_stream;
use executor::RunContext;
use functions::error::from_datafusion;
use futures::StreamExt;
use scan::slice_columns;
use shards::RowIds;
use storage_error::from_txn;
use txn::Transaction;
use types::{SqlError, SqlResult};

use crate::dml::DmlExecutor;

impl DmlExecutor {
    /// Writes rows to shards and stages the shards; the columns are those of the table, then the row id.
    ///
    /// # Errors
    /// Errors of the storage; `57014` when cancelled.
    pub(crate) async fn write_with_ids(
        &self,
        table: &Arc<Table>,
        rows: Vec<RecordBatch>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<()> {
        let load = self.loader.new_load_with_ids(table, transaction);
        let task = Arc::new(TaskContext::default().with_runtime(self.executor.runtime()));
        let written = Arc::clone(table);
        let work = async move {
            let rows = conform_with_ids(&written, rows)?;
            let Some(schema) = rows.first().map(RecordBatch::schema) else { return Ok(Vec::new()) };
            let operators = MemorySourceConfig::try_new_exec(&[rows], schema, None).map_err(from_datafusion)?;
            let operators = plan_table_order(&written, operators, &task).await?;
            let mut stream = execute_stream(operators, task).map_err(from_datafusion)?;
            let mut shards = ShardSplitter::for_all_rows(Arc::new(load));
            while let Some(batch) = stream.next().await {
                shards.push(batch.map_err(from_datafusion)?).await?;
            }
            Ok(shards.finish().await?.shards)
        };
        let mut shards = self.executor.run_task(context, work).await?;
        for shard in &mut shards {
            Arc::make_mut(shard).row_ids = RowIds::Stored;
        }
        let change = Change::AddShards { table: table.oid, shards, sample: None };
        transaction.stage(vec![change]).map_err(from_txn)
    }
}

/// Converts the columns to exactly the table's types and appends the ids.
fn conform_with_ids(table: &Arc<Table>, rows: Vec<RecordBatch>) -> SqlResult<Vec<RecordBatch>> {
    let (conform, width) = (BatchConformer::new(table), table.columns.len());
    let with_ids = |rows: RecordBatch| {
        let id = Arc::clone(&rows.schema().fields()[width]);
        let conformed = conform.conform(slice_columns(&rows, 0, width)?)?;
        let fields: Vec<FieldRef> = conformed.schema().fields().iter().map(Arc::clone).chain([id]).collect();
        let columns: Vec<ArrayRef> = conformed.columns().iter().chain([rows.column(width)]).map(Arc::clone).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|error| SqlError::internal(format!("changed rows do not match the table's columns: {error}")))
    };
    rows.into_iter().map(with_ids).collect()
}
