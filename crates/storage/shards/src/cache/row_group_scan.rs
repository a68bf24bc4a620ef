//! Scan of a row group through the cache.
//!
//! Pages that are not in memory are read from the disk tier, else from the object, and cached if that is worth it.
//! Predicates run on blocks; only the rows that pass become arrays.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use blocks::{BLOCK_ROWS, RowSet, VECTOR_ROWS};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::{JoinHandle, spawn_blocking};
use types::conjunct_order::ConditionStats;

use super::block::ColumnBlock;
use super::idle_prefetch::UncachedColumns;
use super::load_pages::{PageLoad, WantedPage, neighbouring_runs};
use super::{BlockKey, DiskBlockHandle, TableCache};
use crate::prune::{self, Pruning, overlaps};
use crate::reader::{
    BatchAssembler, ColumnSource, RowGroupRead, RowGroupRows, ShardReader, ordinals_from_positions,
    row_ids_from_positions,
};
use crate::{Error, Result};

impl ShardReader {
    /// Reads like [`ShardReader::read`], but through the cache. Missing pages are cached at once if they come over the
    /// network or are read for the third time, others later while no scan reads. Rows are filtered by the predicates
    /// that blocks can evaluate.
    ///
    /// # Errors
    /// As [`ShardReader::read`].
    pub fn read_cached(&self, read: &RowGroupRead, cache: &TableCache) -> Result<RowGroupRows> {
        let Some((pruning, cached)) = self.open_cached(read, cache)? else { return self.read(read) };
        let batches =
            stream::try_unfold(cached, async |mut cached| Ok(cached.next().await?.map(|batch| (batch, cached))));
        Ok(RowGroupRows { pruning, batches: batches.boxed() })
    }

    /// Reads like [`ShardReader::read_cached`], but returns the pages as blocks; arrays if the read bypasses the cache.
    ///
    /// # Errors
    /// As [`ShardReader::read`].
    pub fn read_pages(&self, read: &RowGroupRead, cache: &TableCache) -> Result<RowGroupPages> {
        let is_stored =
            |source: &ColumnSource| matches!(source, ColumnSource::File(..) | ColumnSource::MissingValue(_));
        let cached =
            self.open_cached(read, cache)?.filter(|(_, cached)| cached.batch_assembler.columns.iter().all(is_stored));
        let Some((pruning, cached)) = cached else {
            let rows = self.read(read)?;
            return Ok(RowGroupPages { pruning: rows.pruning, batches: rows.batches.map_ok(ScanBatch::Rows).boxed() });
        };
        let pieces =
            stream::try_unfold(cached, async |mut cached| Ok(cached.next_page().await?.map(|page| (page, cached))));
        Ok(RowGroupPages { pruning, batches: pieces.map_ok(ScanBatch::Page).boxed() })
    }

    /// Opens a read through the cache; `None` if the read must bypass it: the cache is off for the table, a page is too
    /// large, or the rows do not begin and end at page boundaries.
    fn open_cached(&self, read: &RowGroupRead, cache: &TableCache) -> Result<Option<(Pruning, CachedRowGroupReader)>> {
        let file = self.file();
        file.check_row_group(read.row_group)?;
        let rows_of_group = file.rows(read.row_group);
        let rows = read.rows.start.min(rows_of_group)..read.rows.end.min(rows_of_group);
        let ends_with_block = rows.end == rows_of_group || rows.end.is_multiple_of(BLOCK_ROWS);
        let is_refused = cache.is_bypassed() || self.has_oversized_page(read);
        if is_refused || !rows.start.is_multiple_of(BLOCK_ROWS) || !ends_with_block {
            return Ok(None);
        }
        let batch_assembler = BatchAssembler::new(file, &read.columns)?;
        let kept = prune::matching_pages(file, read.row_group, &read.predicates)?;
        let pruning = prune::count_pruned(file, read, batch_assembler.leaves(), &kept);
        let blocks = rows.step_by(BLOCK_ROWS).map(|start| start..rows_of_group.min(start + BLOCK_ROWS));
        let blocks: Vec<Range<usize>> = blocks.filter(|block| overlaps(&kept, block)).collect();
        Ok(Some((pruning, CachedRowGroupReader::new(self, read, cache, batch_assembler, &blocks)?)))
    }
}

/// Result of [`ShardReader::read_pages`]: the pages, and counts of what was pruned.
pub struct RowGroupPages {
    pub pruning: Pruning,
    /// Pages or batches, in row order.
    pub batches: BoxStream<'static, Result<ScanBatch>>,
}

/// Consecutive rows of a read, as a page of blocks or as arrays.
pub enum ScanBatch {
    Page(PageRows),
    /// Arrays, if the read bypasses the cache.
    Rows(RecordBatch),
}

/// Page of blocks with the rows that are not deleted and pass the predicates that blocks can evaluate.
pub struct PageRows {
    /// One for each column of the read.
    pub columns: Vec<PageColumn>,
    /// Selected rows of the page.
    pub rows: RowSet,
}

/// A column of a page.
pub enum PageColumn {
    Block(Arc<ColumnBlock>),
    /// Array of length 1: the value that all rows have, because they are older than the column.
    Constant(ArrayRef),
}

/// Number of pages that are read from disk ahead of the scan.
const DISK_READ_AHEAD_PAGES: usize = 2;

/// Decoded size from which on a column's page is not cached; a cached one would be decoded completely even for a few
/// rows.
const CACHED_PAGE_BYTES_MAX: u64 = 16 << 20;

impl ShardReader {
    /// Returns true if the average page of a wanted column is too large to be cached.
    pub(super) fn has_oversized_page(&self, read: &RowGroupRead) -> bool {
        let group = self.file().metadata.metadata().row_group(read.row_group);
        let pages = (self.file().rows(read.row_group).div_ceil(BLOCK_ROWS) as u64).max(1);
        let is_wanted = |root: usize| {
            let id = self.file().ids.get(root).copied().flatten();
            id.is_some_and(|id| read.columns.iter().any(|column| column.id == id))
        };
        let schema = self.file().metadata.parquet_schema();
        (0..group.num_columns()).filter(|leaf| is_wanted(schema.get_column_root_idx(*leaf))).any(|leaf| {
            let bytes = u64::try_from(group.column(leaf).uncompressed_size()).unwrap_or(u64::MAX);
            CACHED_PAGE_BYTES_MAX < bytes / pages
        })
    }
}

/// Remaining rows of a row group that is read through the cache.
struct CachedRowGroupReader {
    cache: TableCache,
    reader: ShardReader,
    read: RowGroupRead,
    batch_assembler: BatchAssembler,
    /// Position in the shard of the row group's first row.
    first_row: u64,
    object: String,
    /// Pages that are left, in order.
    pages: VecDeque<PendingPage>,
    /// Reads of missing pages from the object, one for each run of neighbouring pages.
    page_loads: VecDeque<PageLoad>,
    /// Page whose rows are being returned.
    current_page: Option<SelectedPage>,
    /// Pages that were read without being cached, for the background filler.
    uncached_columns: Vec<UncachedColumns>,
}

impl Drop for CachedRowGroupReader {
    fn drop(&mut self) {
        if !self.uncached_columns.is_empty() {
            self.cache.defer_caching(&self.reader, &self.read, std::mem::take(&mut self.uncached_columns));
        }
    }
}

/// Page that the scan has not reached yet.
struct PendingPage {
    /// Rows of the page, counted from the start of the row group.
    rows: Range<usize>,
    /// Block of each column of the read; `None` while it is being read, and for columns that the file lacks.
    blocks: Vec<Option<Arc<ColumnBlock>>>,
    /// Positions of the columns to read from the object.
    missing: Vec<usize>,
    /// Positions of the columns to read from the disk tier, until these reads start.
    on_disk: Vec<(usize, DiskBlockHandle)>,
    /// Reads from the disk tier in progress.
    disk_reads: Option<DiskReads>,
    key: BlockKey,
}

/// Columns of a page that are being read from the disk tier.
struct DiskReads {
    positions: Vec<usize>,
    /// Read of each position; yields `None` if the file does not hold the block after all.
    blocks: Vec<JoinHandle<Option<ColumnBlock>>>,
}

impl PendingPage {
    /// Starts reading the columns that are on disk, in parallel.
    fn start_disk_reads(&mut self) {
        if self.on_disk.is_empty() {
            return;
        }
        let rows = self.rows.len();
        let begin = |(position, found): (usize, DiskBlockHandle)| (position, spawn_blocking(move || found.read(rows)));
        let (positions, blocks) = std::mem::take(&mut self.on_disk).into_iter().map(begin).unzip();
        self.disk_reads = Some(DiskReads { positions, blocks });
    }
}

/// Page and its selected rows that were not returned yet.
struct SelectedPage {
    page: PendingPage,
    rows: RowSet,
    /// Next vector to return.
    next_vector: usize,
}

impl CachedRowGroupReader {
    /// Looks up all pages in the cache and starts fetching those that it lacks.
    fn new(
        reader: &ShardReader,
        read: &RowGroupRead,
        cache: &TableCache,
        batch_assembler: BatchAssembler,
        blocks: &[Range<usize>],
    ) -> Result<Self> {
        let file = reader.file();
        let row_group = u32::try_from(read.row_group).expect("a file has fewer than 2^32 row groups");
        let page = |rows: &Range<usize>| {
            let number = u32::try_from(rows.start / BLOCK_ROWS).expect("a row group has fewer than 2^32 rows");
            let mut page = PendingPage {
                rows: rows.clone(),
                blocks: Vec::with_capacity(read.columns.len()),
                missing: Vec::new(),
                on_disk: Vec::new(),
                disk_reads: None,
                key: BlockKey { shard: file.meta.id, column: types::ColumnId(0), row_group, page: number },
            };
            for (position, (column, source)) in read.columns.iter().zip(&batch_assembler.columns).enumerate() {
                let is_stored = matches!(source, ColumnSource::File(..));
                let key = BlockKey { column: column.id, ..page.key };
                let block = is_stored.then(|| cache.get(&key)).flatten();
                if is_stored && block.is_none() {
                    match cache.find_on_disk(&key) {
                        Some(found) => page.on_disk.push((position, found)),
                        None => page.missing.push(position),
                    }
                }
                page.blocks.push(block);
            }
            page
        };
        let pages: VecDeque<PendingPage> = blocks.iter().map(page).collect();
        let mut cached = Self {
            cache: cache.clone(),
            reader: reader.clone(),
            read: read.clone(),
            batch_assembler,
            first_row: file.first_row(read.row_group),
            object: file.meta.object.clone(),
            pages,
            page_loads: VecDeque::new(),
            current_page: None,
            uncached_columns: Vec::new(),
        };
        cached.page_loads = cached.start_loads()?;
        cached.start_disk_reads();
        Ok(cached)
    }

    /// Starts the reads of missing pages, one for each run of neighbouring pages.
    fn start_loads(&self) -> Result<VecDeque<PageLoad>> {
        let lacking = self.pages.iter().filter(|page| !page.missing.is_empty());
        let lacking = lacking.map(|page| (page.rows.clone(), page.missing.as_slice()));
        let load =
            |pages: Vec<WantedPage<'_>>| PageLoad::begin(&self.reader, &self.read, &self.batch_assembler, &pages);
        neighbouring_runs(lacking).into_iter().map(load).collect()
    }

    /// Starts the disk reads of the next pages.
    fn start_disk_reads(&mut self) {
        self.pages.iter_mut().take(DISK_READ_AHEAD_PAGES).for_each(PendingPage::start_disk_reads);
    }

    /// Returns the next batch of rows; `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(selected) = &mut self.current_page {
                if let Some(rows) = selected.take(self.read.batch_rows.max(1)) {
                    let page = &self.current_page.as_ref().expect("current page was checked above").page;
                    return self.build_batch(page, &rows).map(Some);
                }
                self.current_page = None;
            }
            let Some((page, rows)) = self.next_selected().await? else { return Ok(None) };
            self.current_page = Some(SelectedPage { page, rows, next_vector: 0 });
        }
    }

    /// Returns the next page and its selected rows, which may be none.
    async fn next_selected(&mut self) -> Result<Option<(PendingPage, RowSet)>> {
        let Some(mut page) = self.pages.pop_front() else { return Ok(None) };
        let _reading = self.cache.begin_read();
        self.start_disk_reads();
        if let Some(arriving) = page.disk_reads.take() {
            self.finish_disk_reads(&mut page, arriving).await?;
        }
        if !page.missing.is_empty() {
            self.read_missing_columns(&mut page).await?;
        }
        let rows = self.select_rows(&page)?;
        Ok(Some((page, rows)))
    }

    /// Returns the next page with selected rows; `None` at the end.
    async fn next_page(&mut self) -> Result<Option<PageRows>> {
        while let Some((page, rows)) = self.next_selected().await? {
            if rows.is_empty() {
                continue;
            }
            let column = |(source, block): (&ColumnSource, Option<Arc<ColumnBlock>>)| match (source, block) {
                (_, Some(block)) => Ok(PageColumn::Block(block)),
                (ColumnSource::MissingValue(missing), None) => Ok(PageColumn::Constant(missing.repeat(1)?)),
                (_, None) => Err(self.damaged("a column of a page was not read")),
            };
            let columns =
                self.batch_assembler.columns.iter().zip(page.blocks).map(column).collect::<Result<Vec<_>>>()?;
            return Ok(Some(PageRows { columns, rows }));
        }
        Ok(None)
    }

    /// Waits for the disk reads of a page; blocks that were lost are read from the object.
    async fn finish_disk_reads(&mut self, page: &mut PendingPage, arriving: DiskReads) -> Result<()> {
        let mut lost = Vec::new();
        for (position, block) in arriving.positions.into_iter().zip(arriving.blocks) {
            match block.await.ok().flatten().map(Arc::new) {
                Some(block) => {
                    self.cache.insert_from_disk(self.block_key(page, position), &block);
                    page.blocks[position] = Some(block);
                }
                None => lost.push(position),
            }
        }
        if !lost.is_empty() {
            let missing = [(page.rows.clone(), lost.as_slice())];
            let mut load = PageLoad::begin(&self.reader, &self.read, &self.batch_assembler, &missing)?;
            self.take_loaded_columns(page, &mut load, &lost).await?;
        }
        Ok(())
    }

    /// Reads the missing columns of a page from the object.
    async fn read_missing_columns(&mut self, page: &mut PendingPage) -> Result<()> {
        let mut load = self.page_loads.pop_front().expect("every page with missing columns belongs to a load");
        let missing = std::mem::take(&mut page.missing);
        self.take_loaded_columns(page, &mut load, &missing).await?;
        if 0 < load.pages_left {
            self.page_loads.push_front(load);
        }
        Ok(())
    }

    /// Takes the wanted columns of a page from a load and caches those that are worth it.
    async fn take_loaded_columns(
        &mut self,
        page: &mut PendingPage,
        load: &mut PageLoad,
        wanted: &[usize],
    ) -> Result<()> {
        let is_near = self.reader.is_local_shard();
        let is_kept = |position: &usize| !is_near || self.cache.should_cache(self.block_key(page, *position));
        let kept: Vec<usize> = wanted.iter().copied().filter(is_kept).collect();
        let mut large = Vec::new();
        for (position, block) in load.next(&page.rows, wanted, &kept).await? {
            match block {
                Some(block) => self.add_block(page, position, block, &kept),
                None => large.push(position),
            }
        }
        if !large.is_empty() {
            let mut load = PageLoad::begin_with_arrow(&self.reader, &self.read, page.rows.clone(), large.clone())?;
            for (position, block) in load.next(&page.rows, &large, &kept).await? {
                let block = block.ok_or_else(|| self.damaged("a column could not be decoded through Arrow"))?;
                self.add_block(page, position, block, &kept);
            }
        }
        let passes = |position: &usize| matches!(page.blocks[*position].as_deref(), Some(ColumnBlock::Uncached(_)));
        let positions: Vec<usize> = wanted.iter().copied().filter(passes).collect();
        if !positions.is_empty() {
            self.uncached_columns.push(UncachedColumns { rows: page.rows.clone(), key: page.key, positions });
        }
        Ok(())
    }

    /// Adds a column to a page, and to the cache if it is to be cached or had to be packed.
    fn add_block(&self, page: &mut PendingPage, position: usize, block: ColumnBlock, kept: &[usize]) {
        let (key, block) = (self.block_key(page, position), Arc::new(block));
        if kept.contains(&position) {
            self.cache.insert(key, &block);
        } else if !matches!(*block, ColumnBlock::Uncached(_)) {
            // Packed already, so caching it costs nothing more.
            self.cache.insert_first_read(key, &block);
        }
        page.blocks[position] = Some(block);
    }

    /// Returns the cache key of a column of a page.
    fn block_key(&self, page: &PendingPage, position: usize) -> BlockKey {
        BlockKey { column: self.read.columns[position].id, ..page.key }
    }

    /// Returns the rows of the page that are not deleted and pass the predicates that blocks can evaluate.
    fn select_rows(&self, page: &PendingPage) -> Result<RowSet> {
        let mut rows = RowSet::all(page.rows.len());
        if let Some(deleted) = &self.read.deleted {
            let first = self.position_in_shard(page, 0);
            let end = self.position_in_shard(page, page.rows.len());
            deleted.range(first..end).for_each(|place| rows.remove((place - first) as usize));
        }
        let live = rows.count();
        let mut left = live;
        let mut order = self.read.predicate_order.lock_conjuncts(self.read.predicates.len());
        let learns = order.is_adaptive();
        for number in (0..order.len()).filter_map(|place| order.condition_at(place)).collect::<Vec<_>>() {
            let predicate = &self.read.predicates[number];
            let position = self.read.columns.iter().position(|column| column.id == predicate.column);
            if left == 0 {
                break;
            }
            let Some(block) = position.and_then(|position| page.blocks[position].as_ref()) else { continue };
            let began_ns = if learns { self.read.predicate_order.now_ns() } else { 0 };
            block.filter(&predicate.test, &mut rows)?;
            let rows_in = std::mem::replace(&mut left, rows.count());
            if learns {
                let ns = self.read.predicate_order.now_ns().saturating_sub(began_ns);
                order.record(number, ConditionStats { rows_in: rows_in as u64, rows_out: left as u64, ns });
            }
        }
        order.end_round();
        drop(order);
        self.read.removed_rows.fetch_add((live - left) as u64, Ordering::Relaxed);
        Ok(rows)
    }

    /// Builds a batch from the selected rows of a page.
    fn build_batch(&self, page: &PendingPage, rows: &RowSet) -> Result<RecordBatch> {
        let count = rows.count();
        let places = || rows.iter().map(|row| self.position_in_shard(page, row));
        let fields = self.batch_assembler.schema.fields();
        let columns = self.batch_assembler.columns.iter().zip(&page.blocks).zip(fields);
        let columns = columns.map(|((source, block), field)| match (source, block) {
            (ColumnSource::File(..), Some(block)) => block.gather(rows, field.data_type()),
            (ColumnSource::File(..), None) => Err(self.damaged("a column of a page was not read")),
            (ColumnSource::MissingValue(missing), _) => missing.repeat(count),
            (ColumnSource::Ordinal, _) => Ok(ordinals_from_positions(places())),
            (ColumnSource::RowId(first), _) => Ok(row_ids_from_positions(*first, places())),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        Ok(RecordBatch::try_new_with_options(SchemaRef::clone(&self.batch_assembler.schema), columns, &options)?)
    }

    /// Returns the position in the shard of a row of a page.
    fn position_in_shard(&self, page: &PendingPage, row: usize) -> u32 {
        let place = self.first_row + (page.rows.start + row) as u64;
        u32::try_from(place).expect("a shard has fewer than 2^32 rows")
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { object: self.object.clone(), reason: reason.to_owned() }
    }
}

impl SelectedPage {
    fn take(&mut self, wanted: usize) -> Option<RowSet> {
        take_rows(&self.rows, &mut self.next_vector, wanted)
    }
}

/// Returns the next selected rows in complete vectors from `vector` on: at most `wanted`, but always at least one
/// vector's rows. Advances `vector`; returns `None` when no rows are left.
#[must_use]
pub fn take_rows(rows: &RowSet, vector: &mut usize, wanted: usize) -> Option<RowSet> {
    let vectors = rows.vectors();
    while *vector < vectors && rows.is_empty_in_vector(*vector) {
        *vector += 1;
    }
    let start = *vector;
    let mut count = 0;
    while *vector < vectors && (count == 0 || count + rows.count_in_vector(*vector) <= wanted) {
        count += rows.count_in_vector(*vector);
        *vector += 1;
    }
    if count == 0 {
        return None;
    }
    let mut taken = rows.clone();
    taken.remove_range(0..start * VECTOR_ROWS);
    taken.remove_range((*vector * VECTOR_ROWS).min(taken.rows())..taken.rows());
    Some(taken)
}
