//! Reads of the rows that a lookup has found.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::{RowPosition, Table, TableRows};
use futures::StreamExt;
use rowstore::Tuple;
use shards::{ColumnDef, RowGroupRead, ShardMeta};
use storage_error::from_shards;
use types::{SqlError, SqlResult};

use super::row_block_cache::ROW_BLOCK_ROWS;
use super::{KeyLookup, LocatedRow};
use crate::table_columns::column_defs;
use crate::table_rows::encode_table_rows;

/// Returns the number of blocks of shard rows that contain these rows.
pub fn count_blocks(found: &[LocatedRow]) -> usize {
    let piece = |found: &LocatedRow| match found.place {
        RowPosition::Fresh => None,
        RowPosition::Shard { shard, ordinal } => Some((shard, ordinal / ROW_BLOCK_ROWS)),
    };
    found.iter().filter_map(piece).collect::<HashSet<_>>().len()
}

impl KeyLookup {
    /// Reads the rows, in the given order. `table` must have all columns of the catalog: blocks of rows are cached for
    /// other statements too.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn fetch(&self, table: &Arc<Table>, rows: &TableRows, found: &[LocatedRow]) -> SqlResult<Vec<Tuple>> {
        let mut fetched = Vec::with_capacity(found.len());
        for LocatedRow { row, place } in found {
            fetched.push(match place {
                RowPosition::Fresh => {
                    let version = rows
                        .fresh_row(*row)
                        .ok_or_else(|| SqlError::internal("row fetch: the unflushed row is not in the snapshot"))?;
                    version.tuple.clone()
                }
                RowPosition::Shard { shard, ordinal } => {
                    let shard = rows.shards.find(*shard).map(|(_, shard)| shard);
                    let shard = shard.ok_or_else(|| SqlError::internal("row fetch: the shard is missing"))?;
                    Box::pin(self.read_flushed_row(table, &shard, *ordinal)).await?
                }
            });
        }
        Ok(fetched)
    }

    async fn read_flushed_row(&self, table: &Arc<Table>, shard: &Arc<ShardMeta>, ordinal: u32) -> SqlResult<Tuple> {
        // Blocks end with their row group and are counted within it.
        let (mut row, mut row_group, mut pieces_before) = (ordinal, 0, 0);
        while let Some(group) = shard.row_groups.get(row_group)
            && group.rows <= u64::from(row)
        {
            let rows = u32::try_from(group.rows).expect("a row group has fewer rows than its shard");
            row -= rows;
            pieces_before += rows.div_ceil(ROW_BLOCK_ROWS);
            row_group += 1;
        }
        let piece = pieces_before + row / ROW_BLOCK_ROWS;
        let rows = match self.row_blocks.get(shard.id, piece) {
            Some(rows) => rows,
            None => {
                let rows = Arc::new(self.read_block(table, shard, row_group, row / ROW_BLOCK_ROWS).await?);
                self.row_blocks.insert(shard.id, piece, &rows);
                rows
            }
        };
        let row = rows.get((row % ROW_BLOCK_ROWS) as usize).cloned();
        row.ok_or_else(|| SqlError::internal("row fetch: the row's position is beyond the end of its shard"))
    }

    async fn read_block(
        &self,
        table: &Arc<Table>,
        shard: &Arc<ShardMeta>,
        row_group: usize,
        piece: u32,
    ) -> SqlResult<Vec<Tuple>> {
        let reader = self.opened.get_or_open(&self.objects, shard).await.map_err(from_shards)?;
        let group = shard.row_groups.get(row_group);
        let rows = group.map_or(0, |group| usize::try_from(group.rows).expect("a row group's rows fit in memory"));
        let start = (piece * ROW_BLOCK_ROWS) as usize;
        let columns: Arc<[ColumnDef]> = column_defs(table).into();
        let read = RowGroupRead {
            row_group,
            rows: start..rows.min(start + ROW_BLOCK_ROWS as usize),
            columns,
            predicates: Vec::new(),
            deleted: None,
            batch_rows: ROW_BLOCK_ROWS as usize,
            fetched_bytes: Arc::default(),
            removed_rows: Arc::default(),
            predicate_order: Arc::default(),
        };
        let mut batches = reader.read(&read).map_err(from_shards)?.batches;
        let mut fetched = Vec::with_capacity(ROW_BLOCK_ROWS as usize);
        while let Some(batch) = batches.next().await {
            fetched.extend(encode_table_rows(table, batch.map_err(from_shards)?.columns())?);
        }
        Ok(fetched)
    }
}
