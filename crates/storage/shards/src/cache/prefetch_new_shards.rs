//! Prefetching of new shards: their pages of columns that are hot in the table are cached while no scan reads and
//! without evicting anything, so that the first scan finds them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blocks::BLOCK_ROWS;
use types::{ColumnId, Oid};

use super::idle_prefetch::UncachedColumns;
use super::{BlockCache, BlockKey, TableCache};
use crate::reader::{BatchAssembler, ColumnSource, RowGroupRead, ShardReader};
use crate::{ColumnDef, Result};

/// Counters of prefetched blocks.
#[derive(Debug, Default)]
pub(super) struct PrefetchCounters {
    prefetched_blocks: AtomicU64,
    prefetched_bytes: AtomicU64,
}

impl PrefetchCounters {
    /// Counts a prefetched block.
    pub(super) fn count(&self, bytes: u64) {
        self.prefetched_blocks.fetch_add(1, Ordering::Relaxed);
        self.prefetched_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl BlockCache {
    /// Returns the columns of a table with a block in memory that was read again or is pinned.
    #[must_use]
    pub fn hot_columns(&self, table: Oid) -> BTreeSet<ColumnId> {
        self.memory.lock().blocks.hot_keys(table).map(|key| key.column).collect()
    }

    /// Returns the number of prefetched blocks and their bytes.
    #[must_use]
    pub fn prefetched(&self) -> (u64, u64) {
        (
            self.prefetch_counters.prefetched_blocks.load(Ordering::Relaxed),
            self.prefetch_counters.prefetched_bytes.load(Ordering::Relaxed),
        )
    }
}

impl TableCache {
    /// Queues rows of a row group, which must begin at a page boundary, for prefetching. Columns that the file lacks
    /// and those whose pages are too large to be cached are skipped. Returns false if the queue is full or the cache is
    /// off for the table.
    ///
    /// # Errors
    /// If the file lacks the row group, or the default for old rows of a column has the wrong type.
    pub fn prefetch(
        &self,
        reader: &ShardReader,
        row_group: usize,
        rows: Range<usize>,
        columns: &[ColumnDef],
    ) -> Result<bool> {
        let file = reader.file();
        file.check_row_group(row_group)?;
        if self.is_bypassed() {
            return Ok(false);
        }
        let read = RowGroupRead {
            row_group,
            rows,
            columns: columns.into(),
            predicates: Vec::new(),
            deleted: None,
            batch_rows: BLOCK_ROWS,
            fetched_bytes: Arc::default(),
            removed_rows: Arc::default(),
            predicate_order: Arc::default(),
        };
        let assembly = BatchAssembler::new(file, &read.columns)?;
        let is_wide = |column: &ColumnDef| {
            let only: Arc<[ColumnDef]> = [column.clone()].into();
            reader.has_oversized_page(&RowGroupRead { columns: only, ..read.clone() })
        };
        let sources = assembly.columns.iter().zip(read.columns.iter()).enumerate();
        let stored =
            sources.filter(|(_, (source, column))| matches!(source, ColumnSource::File(..)) && !is_wide(column));
        let positions: Vec<usize> = stored.map(|(position, _)| position).collect();
        if positions.is_empty() {
            return Ok(true);
        }
        let end = read.rows.end.min(file.rows(row_group));
        let in_file = u32::try_from(row_group).expect("a file has fewer than 2^32 row groups");
        let page = |start: usize| {
            let number = u32::try_from(start / BLOCK_ROWS).expect("a row group has fewer than 2^32 rows");
            let key = BlockKey { shard: file.meta.id, column: ColumnId(0), row_group: in_file, page: number };
            UncachedColumns { rows: start..(start + BLOCK_ROWS).min(end), key, positions: positions.clone() }
        };
        let pages = (read.rows.start..end).step_by(BLOCK_ROWS).map(page).collect();
        self.register_shard(file.meta.id);
        Ok(self
            .cache
            .idle_prefetcher
            .as_ref()
            .is_some_and(|filler| filler.enqueue_prefetch(self, reader, &read, pages)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use objects::{FolderDisk, Objects};
    use tempfile::TempDir;
    use types::{CachePolicy, Clock, DiskReserve, ShardId, SystemClock};
    use uuid::Uuid;

    use super::super::tests::{many_rows, read_cached, shard};
    use super::super::{CacheStats, DiskTierSettings};
    use super::*;
    use crate::writer::tests::bucket;
    use crate::{ShardWriter, WriteOptions};

    const TABLE: Oid = Oid(1);
    const PAGES: usize = 2;

    async fn new_shard(objects: &Objects) -> ShardReader {
        let (columns, batch) = many_rows();
        let options = WriteOptions { page_rows: BLOCK_ROWS, row_group_pages: PAGES };
        let id = ShardId(Uuid::from_u128(8));
        let mut writer = ShardWriter::create(objects, id, "tables/1/8.parquet", &columns, options).expect("it is new");
        writer.write(&batch).await.expect("memory takes it");
        let meta = Arc::new(writer.finish().await.expect("memory takes it"));
        ShardReader::open(objects, &meta).await.expect("it was written")
    }

    #[tokio::test]
    async fn what_is_hot_in_a_table_is_there_of_a_new_shard_too() {
        let (objects, folder) = (bucket(), TempDir::new().expect("a temporary folder can be made"));
        let reserve = DiskReserve { disk: Arc::new(FolderDisk::new(folder.path())), bytes: 0 };
        let disk = DiskTierSettings { folder: folder.path().to_owned(), bytes_max: 1 << 24, space_divisor: 1, reserve };
        let cache = Arc::new(BlockCache::with_disk(64 << 20, disk).expect("the folder is empty"));
        let (columns, batch) = many_rows();
        let old = ShardReader::open(&objects, &shard(&objects, &columns, &batch).await).await.expect("it was written");
        for _ in 0..2 {
            read_cached(&old, &cache, &columns[..2], &[], None).await;
        }
        read_cached(&old, &cache, &columns[2..3], &[], None).await;
        let hot: Vec<ColumnId> = cache.hot_columns(TABLE).into_iter().collect();
        assert_eq!(hot, [ColumnId(1), ColumnId(2)], "the third was read once");
        assert!(cache.hot_columns(Oid(2)).is_empty());

        let new = new_shard(&objects).await;
        let before = cache.memory_stats();
        let table = cache.for_table(TABLE, CachePolicy::Normal);
        let rows = new.file().rows(0);
        assert!(table.prefetch(&new, 0, 0..rows, &columns[..2]).expect("it is there"));
        let expected = 2 * PAGES as u64;
        for _ in 0..1000 {
            if cache.prefetched().0 == expected {
                break;
            }
            SystemClock::new().sleep(Duration::from_millis(10)).await;
        }
        let (blocks, bytes) = cache.prefetched();
        assert_eq!((blocks, cache.memory_stats().bytes), (expected, before.bytes + bytes));
        assert!(0 < bytes);
        let read = crate::reader::tests::read_of(0, &columns[..2], &[]);
        let read = new.read_cached(&read, &table).expect("it is there");
        futures::TryStreamExt::try_collect::<Vec<_>>(read.batches).await.expect("nothing is damaged");
        let CacheStats { hits, misses, .. } = cache.memory_stats();
        assert_eq!((hits, misses), (before.hits + expected, before.misses), "all of it was there");

        assert!(!cache.for_table(TABLE, CachePolicy::Never).prefetch(&new, 0, 0..rows, &columns).expect("it is there"));
        assert!(table.prefetch(&new, 9, 0..rows, &columns).is_err(), "it has no such row group");
    }
}
