//! Rewrites rows of a table to new shards, with their row ids.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use bulk_load::{ShardSplitter, plan_table_order, table_sample};
use catalog::{Sample, Table, TableRows};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionConfig;
use functions::error::from_datafusion;
use futures::StreamExt;
use plan::ShardTable;
use scan::slice_columns;
use scheduler::{Priority, QueryShare};
use shards::{RowIds, RowSample, ShardMeta};
use storage_error::from_shards;
use txn::Transaction;
use types::{RowId, SqlError, SqlResult};

use crate::maintenance::Maintenance;

/// Result of a rewrite: the new shards and the position of each row.
pub(crate) struct RewrittenRows {
    pub(crate) shards: Vec<Arc<ShardMeta>>,
    /// Id of each row and its previous position as the scan encodes it, in the order of the new shards.
    pub(crate) rows: Vec<(RowId, i64)>,
    /// Random sample of the rows.
    pub(crate) sample: RecordBatch,
}

impl RewrittenRows {
    /// Returns for each row, in the order of `rows`, its id, its previous position, the index of its new shard and its
    /// ordinal there.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (RowId, i64, u32, u32)> + '_ {
        let shards = self.shards.iter().zip(0..).flat_map(|(shard, number)| {
            let rows = u32::try_from(shard.rows).expect("a shard has fewer than 2^32 rows");
            (0..rows).map(move |ordinal| (number, ordinal))
        });
        self.rows.iter().zip(shards).map(|((id, place), (shard, ordinal))| (*id, *place, shard, ordinal))
    }
}

impl Maintenance {
    /// Writes all of `rows` to new shards in the table's order; `transaction` announces the uploads.
    pub(crate) async fn rewrite(
        self: &Arc<Self>,
        table: &Arc<Table>,
        rows: TableRows,
        transaction: &Transaction,
    ) -> SqlResult<RewrittenRows> {
        let load = self.loader.new_load_with_ids(table, transaction);
        let (maintenance, table) = (Arc::clone(self), Arc::clone(table));
        let work = async move {
            let config = SessionConfig::new().with_target_partitions(maintenance.executor.default_partitions());
            let state = SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(maintenance.executor.runtime())
                .with_default_features()
                .build();
            let task = state.task_ctx();
            let source = ShardTable::new(Arc::clone(&table), Arc::new(rows), Arc::clone(&maintenance.scans))
                .with_row_positions();
            let operators = maintenance.scans.plan_scan(&source, None, &[], None, &state);
            let operators = plan_table_order(&table, operators.map_err(from_datafusion)?, &task).await?;
            let mut stream = execute_stream(operators, task).map_err(from_datafusion)?;
            let mut shards = ShardSplitter::for_all_rows(Arc::new(load));
            let mut rows = Vec::new();
            let mut drawn = RowSample::new(table_sample::schema(&table), Sample::ROW_COUNT_MAX);
            let width = table.columns.len();
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(from_datafusion)?;
                append_row_positions(&batch, width, &mut rows);
                let columns = slice_columns(&batch, 0, width)?;
                drawn.add(&table_sample::with_sample_schema(&columns, &table)?).map_err(from_shards)?;
                shards.push(slice_columns(&batch, 0, width + 1)?).await?;
            }
            let mut shards = shards.finish().await?.shards;
            for shard in &mut shards {
                Arc::make_mut(shard).row_ids = RowIds::Stored;
            }
            let sample = drawn.finish().map_err(from_shards)?;
            Ok(RewrittenRows { shards, rows, sample })
        };
        let ended = self.executor.query_threads().spawn(&Arc::new(QueryShare::new(Priority::Low)), work).await;
        ended.map_err(|error| SqlError::internal(format!("the task that rewrites a table's rows failed: {error}")))?
    }
}

/// Appends the row ids and positions of a scanned batch, which follow its `width` table columns.
fn append_row_positions(batch: &RecordBatch, width: usize, rows: &mut Vec<(RowId, i64)>) {
    let ids = batch.column(width).as_primitive::<Int64Type>();
    let places = batch.column(width + 1).as_primitive::<Int64Type>();
    let ids = ids.values().iter().map(|id| RowId(id.cast_unsigned()));
    rows.extend(ids.zip(places.values().iter().copied()));
}
