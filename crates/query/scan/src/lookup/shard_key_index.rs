//! Key indexes of shards, built in memory on first use and cached.

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
use storage_error::{from_rowstore, from_shards};
use tokio::sync::OnceCell;
use types::{ColumnId, RowId, ShardId, SqlError, SqlResult};

use super::KeyColumns;
use super::key_range::KeyRange;
use crate::open_shards::OpenShardCache;
use crate::table_columns::{column_def, row_locator_columns};

/// Maximum memory of all key indexes, in bytes.
const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Number of rows per batch while an index is built.
const BATCH_ROWS: usize = 65_536;

/// Key index of one shard: its rows in key order.
#[derive(Debug)]
pub(crate) struct ShardKeyIndex {
    keys: PackedKeys,
    /// Position in the shard of each key's row; `None` if keys and rows have the same order.
    ordinals: Option<Vec<u32>>,
    row_ids: RowIdSource,
}

/// Byte strings in one buffer.
#[derive(Debug, Default)]
struct PackedKeys {
    bytes: Vec<u8>,
    /// End of each string; empty while all have the same width.
    ends: Vec<usize>,
    width: usize,
    count: usize,
}

/// Row ids of a shard: consecutive from the first one, or stored.
#[derive(Debug)]
enum RowIdSource {
    From(RowId),
    /// Row ids by position in the shard.
    Stored(Vec<RowId>),
}

impl ShardKeyIndex {
    /// Returns the positions of the keys in a range.
    pub(super) fn range(&self, range: &KeyRange) -> Range<usize> {
        let start = self.keys.partition_point(|key| key < range.from.as_slice());
        let end = self.keys.partition_point(|key| key < range.to.as_slice());
        start..end.max(start)
    }

    pub(super) fn key(&self, position: usize) -> &[u8] {
        self.keys.get(position)
    }

    /// Returns the position in the shard and the id of the row with the key at `position`.
    pub(super) fn row(&self, position: usize) -> (u32, RowId) {
        let by_order = || u32::try_from(position).expect("a shard has fewer than 2^32 rows");
        let ordinal = self.ordinals.as_ref().map_or_else(by_order, |ordinals| ordinals[position]);
        let row = match &self.row_ids {
            RowIdSource::From(first) => RowId(first.0 + u64::from(ordinal)),
            RowIdSource::Stored(rows) => rows[ordinal as usize],
        };
        (ordinal, row)
    }

    fn new(keys: PackedKeys, rows: RowIdSource) -> Self {
        if (1..keys.count).all(|position| keys.get(position - 1) <= keys.get(position)) {
            return Self { keys, ordinals: None, row_ids: rows };
        }
        let count = u32::try_from(keys.count).expect("a shard has fewer than 2^32 rows");
        let mut ordinals: Vec<u32> = (0..count).collect();
        ordinals.sort_unstable_by(|a, b| (keys.get(*a as usize), a).cmp(&(keys.get(*b as usize), b)));
        let mut ordered = PackedKeys::default();
        ordered.bytes.reserve_exact(keys.bytes.len());
        for ordinal in &ordinals {
            ordered.push(keys.get(*ordinal as usize));
        }
        Self { keys: ordered, ordinals: Some(ordinals), row_ids: rows }
    }

    fn memory_bytes(&self) -> usize {
        let rows = match &self.row_ids {
            RowIdSource::From(_) => 0,
            RowIdSource::Stored(rows) => rows.len() * size_of::<RowId>(),
        };
        let ordinals = self.ordinals.as_ref().map_or(0, |ordinals| ordinals.len() * size_of::<u32>());
        rows + ordinals + self.keys.bytes.len() + self.keys.ends.len() * size_of::<usize>()
    }
}

impl PackedKeys {
    fn push(&mut self, key: &[u8]) {
        if self.count == 0 {
            self.width = key.len();
        }
        if self.ends.is_empty() && key.len() != self.width {
            self.ends = (1..=self.count).map(|count| count * self.width).collect();
        }
        self.bytes.extend_from_slice(key);
        if !self.ends.is_empty() || key.len() != self.width {
            self.ends.push(self.bytes.len());
        }
        self.count += 1;
    }

    fn get(&self, position: usize) -> &[u8] {
        if self.ends.is_empty() {
            return &self.bytes[position * self.width..(position + 1) * self.width];
        }
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        &self.bytes[start..self.ends[position]]
    }

    /// Returns the number of leading keys for which `is_before` is true (binary search).
    fn partition_point(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// LRU cache of key indexes.
#[derive(Debug, Default)]
pub(crate) struct KeyIndexCache {
    inner: Mutex<KeyIndexCacheState>,
}

/// Key index, built once by the first caller while others wait.
type IndexCell = Arc<OnceCell<Arc<ShardKeyIndex>>>;

/// State of the cache: the key indexes of each shard, with their columns and the time of their last use.
#[derive(Debug, Default)]
struct KeyIndexCacheState {
    cells: HashMap<ShardId, Vec<(Vec<ColumnId>, IndexCell, u64)>>,
    /// Number of uses so far, as the time of the last use.
    clock: u64,
}

impl KeyIndexCache {
    /// Returns the key index of a shard, and builds it on first use.
    pub(super) async fn get_or_build(
        &self,
        opened: &OpenShardCache,
        objects: &Objects,
        of: KeyColumns<'_>,
        shard: &Arc<ShardMeta>,
    ) -> SqlResult<Arc<ShardKeyIndex>> {
        let cell = self.cell(shard.id, of.columns);
        if let Some(keys) = cell.get() {
            return Ok(Arc::clone(keys));
        }
        let keys =
            cell.get_or_try_init(|| async { build_index(opened, objects, of, shard).await.map(Arc::new) }).await?;
        self.evict(shard.id);
        Ok(Arc::clone(keys))
    }

    fn cell(&self, shard: ShardId, columns: &[ColumnId]) -> IndexCell {
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let now = inner.clock;
        let cells = inner.cells.entry(shard).or_default();
        if let Some((_, cell, used)) = cells.iter_mut().find(|(of, _, _)| of == columns) {
            *used = now;
            return Arc::clone(cell);
        }
        let cell = IndexCell::default();
        cells.push((columns.to_vec(), Arc::clone(&cell), now));
        cell
    }

    fn evict(&self, keep: ShardId) {
        let mut inner = self.inner.lock();
        let bytes = |cell: &IndexCell| cell.get().map_or(0, |keys| keys.memory_bytes());
        let of_shard =
            |cells: &[(Vec<ColumnId>, IndexCell, u64)]| cells.iter().map(|(_, cell, _)| bytes(cell)).sum::<usize>();
        let mut total: usize = inner.cells.values().map(|cells| of_shard(cells)).sum();
        while MEMORY_BYTES_MAX < total {
            let others = inner.cells.iter().filter(|(shard, _)| **shard != keep);
            let used = |cells: &[(Vec<ColumnId>, IndexCell, u64)]| cells.iter().map(|(_, _, used)| *used).max();
            let Some(oldest) = others.min_by_key(|(_, cells)| used(cells)).map(|(shard, _)| *shard) else { return };
            total -= inner.cells.remove(&oldest).map_or(0, |cells| of_shard(&cells));
        }
    }
}

async fn build_index(
    opened: &OpenShardCache,
    objects: &Objects,
    of: KeyColumns<'_>,
    shard: &Arc<ShardMeta>,
) -> SqlResult<ShardKeyIndex> {
    let reader = opened.get_or_open(objects, shard).await.map_err(from_shards)?;
    let mut columns = Vec::with_capacity(of.columns.len() + 1);
    for id in of.columns {
        let column = of
            .table
            .column(*id)
            .ok_or_else(|| SqlError::internal("shard key index: the shard has no such indexed column"))?;
        columns.push(column_def(column));
    }
    let stored = shard.row_ids == RowIds::Stored;
    columns.extend(row_locator_columns().into_iter().filter(|column| stored && column.id == ROW_ID_COLUMN));
    let columns: Arc<[ColumnDef]> = columns.into();
    let count = usize::try_from(shard.rows).expect("a shard's rows fit in memory");
    let mut keys = PackedKeys::default();
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
            removed_rows: Arc::default(),
            predicate_order: Arc::default(),
        };
        let mut batches = reader.read(&read).map_err(from_shards)?.batches;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(from_shards)?;
            let values = ColumnValues::for_columns(&batch.columns()[..of.columns.len()]).map_err(from_rowstore)?;
            let mut key = Vec::new();
            for row in 0..batch.num_rows() {
                key.clear();
                encode_key(values.iter().map(|values| values.get(row)), &mut key);
                keys.push(&key);
            }
            if stored {
                let values = batch.column(of.columns.len()).as_primitive::<Int64Type>();
                ids.extend(values.values().iter().map(|id| RowId(id.cast_unsigned())));
            }
        }
    }
    let rows = match shard.row_ids {
        RowIds::From(first) => RowIdSource::From(first),
        RowIds::Stored => RowIdSource::Stored(ids),
        RowIds::None => return Err(SqlError::internal("shard key index: the rows have no ids")),
    };
    Ok(ShardKeyIndex::new(keys, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_width_are_sorted() {
        for texts in [vec!["bb", "aa", "cc", "aa"], vec!["b", "", "ccc", "aa", "b"], vec!["a", "b"]] {
            let mut keys = PackedKeys::default();
            for text in &texts {
                keys.push(text.as_bytes());
            }
            let index = ShardKeyIndex::new(keys, RowIdSource::From(RowId(100)));
            let all = index.range(&KeyRange { from: Vec::new(), to: vec![0xff] });
            let mut wanted: Vec<(&str, u32)> = texts.iter().copied().zip(0..).collect();
            wanted.sort_unstable();
            let found: Vec<(&str, u32)> = all
                .map(|position| {
                    let (ordinal, row) = index.row(position);
                    assert_eq!(row, RowId(100 + u64::from(ordinal)));
                    (std::str::from_utf8(index.key(position)).unwrap(), ordinal)
                })
                .collect();
            assert_eq!(found, wanted);
            let some = index.range(&KeyRange { from: b"aa".to_vec(), to: b"b\xff".to_vec() });
            assert_eq!(some.len(), wanted.iter().filter(|(text, _)| *text >= "aa" && *text < "c").count());
        }
    }
}
