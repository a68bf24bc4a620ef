//! The index of one shard by some of its columns: made when it is first asked for, kept while there is memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use objects::Objects;
use parking_lot::Mutex;
use rowstore::{ColumnValues, encode_key};
use shards::{ColumnDef, ROW_ID_COLUMN, RowGroupRead, RowIds, ShardMeta};
use tokio::sync::OnceCell;
use types::{ColumnId, RowId, ShardId, SqlError, SqlResult};

use super::KeyColumns;
use crate::error::{from_rowstore, from_shards};
use crate::scan::OpenedShards;
use crate::table_columns::{column_def, place_columns};

/// Memory that indexes of shards may take.
const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Rows that are read at a time.
const BATCH_ROWS: usize = 65_536;

/// Rows of one shard by the hash of their key.
#[derive(Debug)]
pub(crate) struct ShardKeys {
    /// XXH3 of each row's key, ascending, with the row's place: two keys share one in no world that lasts.
    entries: Vec<(u128, u32)>,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    From(RowId),
    /// By place.
    Stored(Vec<RowId>),
}

impl ShardKeys {
    /// The rows with this key: their places in the shard, and their ids.
    pub(super) fn find(&self, key: &[u8]) -> impl Iterator<Item = (u32, RowId)> + '_ {
        let hash = xxhash_rust::xxh3::xxh3_128(key);
        let start = self.entries.partition_point(|(entry, _)| *entry < hash);
        let equal = self.entries[start..].iter().take_while(move |(entry, _)| *entry == hash);
        equal.map(|(_, ordinal)| (*ordinal, self.row(*ordinal)))
    }

    fn row(&self, ordinal: u32) -> RowId {
        match &self.rows {
            Rows::From(first) => RowId(first.0 + u64::from(ordinal)),
            Rows::Stored(rows) => rows[ordinal as usize],
        }
    }

    fn memory_bytes(&self) -> usize {
        let rows = match &self.rows {
            Rows::From(_) => 0,
            Rows::Stored(rows) => rows.len() * size_of::<RowId>(),
        };
        rows + self.entries.len() * size_of::<(u128, u32)>()
    }
}

/// Indexes of shards; those used least lately go first.
#[derive(Debug, Default)]
pub(crate) struct KeyCache {
    inner: Mutex<Inner>,
}

type Cell = Arc<OnceCell<Arc<ShardKeys>>>;

#[derive(Debug, Default)]
struct Inner {
    cells: HashMap<(ShardId, Vec<ColumnId>), (Cell, u64)>,
    /// Counts uses.
    clock: u64,
}

impl KeyCache {
    /// The index of a shard.
    pub(super) async fn of(
        &self,
        opened: &OpenedShards,
        objects: &Objects,
        of: KeyColumns<'_>,
        shard: &Arc<ShardMeta>,
    ) -> SqlResult<Arc<ShardKeys>> {
        let cell = self.cell(shard.id, of.columns);
        if let Some(keys) = cell.get() {
            return Ok(Arc::clone(keys));
        }
        let keys = cell.get_or_try_init(|| async { read(opened, objects, of, shard).await.map(Arc::new) }).await?;
        self.make_room(shard.id);
        Ok(Arc::clone(keys))
    }

    fn cell(&self, shard: ShardId, columns: &[ColumnId]) -> Cell {
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let now = inner.clock;
        let (cell, used) = inner.cells.entry((shard, columns.to_vec())).or_default();
        *used = now;
        Arc::clone(cell)
    }

    fn make_room(&self, keep: ShardId) {
        let mut inner = self.inner.lock();
        let bytes = |cell: &Cell| cell.get().map_or(0, |keys| keys.memory_bytes());
        let mut total: usize = inner.cells.values().map(|(cell, _)| bytes(cell)).sum();
        while MEMORY_BYTES_MAX < total {
            let others = inner.cells.iter().filter(|((shard, _), _)| *shard != keep);
            let Some(oldest) = others.min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone()) else { return };
            if let Some((cell, _)) = inner.cells.remove(&oldest) {
                total -= bytes(&cell);
            }
        }
    }
}

async fn read(
    opened: &OpenedShards,
    objects: &Objects,
    of: KeyColumns<'_>,
    shard: &Arc<ShardMeta>,
) -> SqlResult<ShardKeys> {
    let reader = opened.get(objects, shard).await.map_err(from_shards)?;
    let mut columns = Vec::with_capacity(of.columns.len() + 1);
    for id in of.columns {
        let column =
            of.table.column(*id).ok_or_else(|| SqlError::internal("an index of a column that is not there"))?;
        columns.push(column_def(column));
    }
    let stored = shard.row_ids == RowIds::Stored;
    columns.extend(place_columns().into_iter().filter(|column| stored && column.id == ROW_ID_COLUMN));
    let columns: Arc<[ColumnDef]> = columns.into();
    let count = usize::try_from(shard.rows).expect("a shard's rows fit in memory");
    let mut entries = Vec::with_capacity(count);
    let mut ids = Vec::with_capacity(if stored { count } else { 0 });
    for (row_group, group) in shard.row_groups.iter().enumerate() {
        let rows: Range<usize> = 0..usize::try_from(group.rows).expect("a row group's rows fit in memory");
        let read = RowGroupRead {
            row_group,
            rows,
            columns: Arc::clone(&columns),
            predicates: Vec::new(),
            deleted: None,
            batch_rows: BATCH_ROWS,
            fetched_bytes: Arc::default(),
        };
        let mut batches = reader.read(&read).map_err(from_shards)?.batches;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(from_shards)?;
            let keys = ColumnValues::of_all(&batch.columns()[..of.columns.len()]).map_err(from_rowstore)?;
            let mut key = Vec::new();
            for row in 0..batch.num_rows() {
                key.clear();
                encode_key(keys.iter().map(|values| values.get(row)), &mut key);
                let ordinal = u32::try_from(entries.len()).expect("a shard has fewer than 2^32 rows");
                entries.push((xxhash_rust::xxh3::xxh3_128(&key), ordinal));
            }
            if stored {
                let values = batch.column(of.columns.len()).as_primitive::<Int64Type>();
                ids.extend(values.values().iter().map(|id| RowId(id.cast_unsigned())));
            }
        }
    }
    entries.sort_unstable();
    let rows = match shard.row_ids {
        RowIds::From(first) => Rows::From(first),
        RowIds::Stored => Rows::Stored(ids),
        RowIds::None => return Err(SqlError::internal("a shard whose rows have no ids")),
    };
    Ok(ShardKeys { entries, rows })
}
