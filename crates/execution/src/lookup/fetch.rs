//! Rows that were found, read from where they lie.

use std::sync::Arc;

use catalog::{RowPlace, Table, TableRows};
use futures::StreamExt;
use rowstore::Tuple;
use shards::{ColumnDef, RowGroupRead, ShardMeta};
use types::{SqlError, SqlResult};

use super::Found;
use crate::Execution;
use crate::error::from_shards;
use crate::modify::tuples;
use crate::table_columns::column_defs;

impl Execution {
    /// The rows in the order given.
    pub(crate) async fn fetch(&self, table: &Arc<Table>, rows: &TableRows, found: &[Found]) -> SqlResult<Vec<Tuple>> {
        let mut fetched = Vec::with_capacity(found.len());
        for Found { row, place } in found {
            fetched.push(match place {
                RowPlace::Fresh => {
                    let version = rows.fresh_row(*row).ok_or_else(|| SqlError::internal("a found row is not there"))?;
                    version.tuple.clone()
                }
                RowPlace::Shard { shard, ordinal } => {
                    let shard = rows.shards.find(*shard).map(|(_, shard)| shard);
                    let shard = shard.ok_or_else(|| SqlError::internal("a found row's shard is not there"))?;
                    self.settled_row(table, shard, *ordinal).await?
                }
            });
        }
        Ok(fetched)
    }

    async fn settled_row(&self, table: &Arc<Table>, shard: &Arc<ShardMeta>, ordinal: u32) -> SqlResult<Tuple> {
        let reader = self.opened.get(&self.objects, shard).await.map_err(from_shards)?;
        let mut row = ordinal as usize;
        let mut row_group = 0;
        while let Some(group) = shard.row_groups.get(row_group)
            && group.rows <= row as u64
        {
            row -= usize::try_from(group.rows).expect("a row group's rows fit in memory");
            row_group += 1;
        }
        let columns: Arc<[ColumnDef]> = column_defs(table).into();
        let read = RowGroupRead {
            row_group,
            rows: row..row + 1,
            columns,
            predicates: Vec::new(),
            deleted: None,
            batch_rows: 1,
            fetched_bytes: Arc::default(),
        };
        let mut batches = reader.read(&read).map_err(from_shards)?.batches;
        let batch = batches.next().await.transpose().map_err(from_shards)?;
        let batch = batch.ok_or_else(|| SqlError::internal("a found row is not in its shard"))?;
        tuples(table, batch.columns())?.pop().ok_or_else(|| SqlError::internal("a found row is not in its shard"))
    }
}
