//! A row group read through the cache: pages that are not in memory are read from the cache's files, those that are not there from the
//! object, and kept; then predicates run on blocks, and only the rows that pass become arrays.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use arrow::datatypes::SchemaRef;
use blocks::{BLOCK_ROWS, RowSet, VECTOR_ROWS};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;
use tokio::task::{JoinHandle, spawn_blocking};

use super::block::ColumnBlock;
use super::{BlockKey, Found, TableCache};
use crate::prune::{self, Pruning, overlaps};
use crate::reader::{Assembly, RowGroupRead, RowGroupRows, ShardReader, Source, ordinals_of, row_ids_of};
use crate::{ColumnDef, Error, Predicate, Result};

impl ShardReader {
    /// As [`ShardReader::read`], of blocks where `cache` has them; pages that it lacks are kept there. Rows that do not pass the predicates
    /// are left out where blocks can tell.
    ///
    /// # Errors
    /// As [`ShardReader::read`].
    pub fn read_cached(&self, read: &RowGroupRead, cache: &TableCache) -> Result<RowGroupRows> {
        let Some((pruning, cached)) = self.cached(read, cache)? else { return self.read(read) };
        let batches =
            stream::try_unfold(cached, async |mut cached| Ok(cached.next().await?.map(|batch| (batch, cached))));
        Ok(RowGroupRows { pruning, batches: batches.boxed() })
    }

    /// As [`ShardReader::read_cached`], the pages as they lie in the cache; arrays of those that are not kept there.
    ///
    /// # Errors
    /// As [`ShardReader::read`].
    pub fn read_pages(&self, read: &RowGroupRead, cache: &TableCache) -> Result<RowGroupPages> {
        let is_stored = |source: &Source| matches!(source, Source::File(..) | Source::Missing(_));
        let cached = self.cached(read, cache)?.filter(|(_, cached)| cached.assembly.columns.iter().all(is_stored));
        let Some((pruning, cached)) = cached else {
            let rows = self.read(read)?;
            return Ok(RowGroupPages { pruning: rows.pruning, pieces: rows.batches.map_ok(Piece::Rows).boxed() });
        };
        let pieces =
            stream::try_unfold(cached, async |mut cached| Ok(cached.next_page().await?.map(|page| (page, cached))));
        Ok(RowGroupPages { pruning, pieces: pieces.map_ok(Piece::Page).boxed() })
    }

    /// A read through the cache; `None` where it has to go by it.
    fn cached(&self, read: &RowGroupRead, cache: &TableCache) -> Result<Option<(Pruning, CachedRows)>> {
        let file = self.file();
        file.check_row_group(read.row_group)?;
        let rows_of_group = file.rows(read.row_group);
        let rows = read.rows.start.min(rows_of_group)..read.rows.end.min(rows_of_group);
        let ends_with_block = rows.end == rows_of_group || rows.end.is_multiple_of(BLOCK_ROWS);
        let is_refused = cache.is_off() || self.is_wide(read);
        if is_refused || !rows.start.is_multiple_of(BLOCK_ROWS) || !ends_with_block {
            return Ok(None);
        }
        let assembly = Assembly::new(file, &read.columns)?;
        let kept = prune::pages(file, read.row_group, &read.predicates)?;
        let pruning = prune::counted(file, read, assembly.leaves(), &kept);
        let blocks = rows.step_by(BLOCK_ROWS).map(|start| start..rows_of_group.min(start + BLOCK_ROWS));
        let blocks: Vec<Range<usize>> = blocks.filter(|block| overlaps(&kept, block)).collect();
        Ok(Some((pruning, CachedRows::new(self, read, cache, assembly, &blocks)?)))
    }
}

/// What a read of pages gives, and how much of the row group it skips.
pub struct RowGroupPages {
    pub pruning: Pruning,
    pub pieces: BoxStream<'static, Result<Piece>>,
}

/// Some rows of a read, in their order.
pub enum Piece {
    Page(PageRows),
    /// Of pages that are not kept.
    Rows(RecordBatch),
}

/// The rows of a page that are not deleted, and that pass the predicates as far as its blocks can tell.
pub struct PageRows {
    /// One for each column of the read.
    pub columns: Vec<PageColumn>,
    pub rows: RowSet,
}

/// A column of a page.
pub enum PageColumn {
    Block(Arc<ColumnBlock>),
    /// An array of the one value of all its rows, which are older than the column.
    Same(ArrayRef),
}

/// Decoded bytes of a column's page from which on it is not kept: it would be decoded whole where few of its rows are wanted.
const PAGE_BYTES_MAX: u64 = 16 << 20;

impl ShardReader {
    /// Whether a page of a wanted column is too large to be kept.
    fn is_wide(&self, read: &RowGroupRead) -> bool {
        let group = self.file().metadata.metadata().row_group(read.row_group);
        let pages = (self.file().rows(read.row_group).div_ceil(BLOCK_ROWS) as u64).max(1);
        let is_wanted = |root: usize| {
            let id = self.file().ids.get(root).copied().flatten();
            id.is_some_and(|id| read.columns.iter().any(|column| column.id == id))
        };
        let schema = self.file().metadata.parquet_schema();
        (0..group.num_columns()).filter(|leaf| is_wanted(schema.get_column_root_idx(*leaf))).any(|leaf| {
            let bytes = u64::try_from(group.column(leaf).uncompressed_size()).unwrap_or(u64::MAX);
            PAGE_BYTES_MAX < bytes / pages
        })
    }
}

/// What is left to read of a row group.
struct CachedRows {
    cache: TableCache,
    reader: ShardReader,
    row_group: usize,
    fetched_bytes: Arc<AtomicU64>,
    assembly: Assembly,
    /// Of the columns, those of the file.
    columns: Arc<[ColumnDef]>,
    predicates: Vec<Predicate>,
    deleted: Option<Arc<RoaringBitmap>>,
    removed_rows: Arc<AtomicU64>,
    batch_rows: usize,
    /// The shard's row that is the row group's first.
    first_row: u64,
    object: String,
    pages: VecDeque<Page>,
    loads: VecDeque<Load>,
    /// The page whose rows are given.
    current: Option<Selected>,
}

/// The rows of one block.
struct Page {
    rows: Range<usize>,
    /// A column of the read each; `None` for what is read, or is not of the file.
    blocks: Vec<Option<Arc<ColumnBlock>>>,
    /// Columns that are read, by position.
    missing: Vec<usize>,
    /// Columns that lie on disk, by position, until they are asked for.
    found: Vec<(usize, Found)>,
    reading: Option<Reading>,
    key: BlockKey,
}

/// Columns of a page on their way from disk.
struct Reading {
    positions: Vec<usize>,
    /// One for each position; `None` for what is not there after all.
    blocks: JoinHandle<Vec<Option<ColumnBlock>>>,
}

impl Page {
    /// Has what lies on disk read from now on.
    fn begin(&mut self) {
        if self.found.is_empty() {
            return;
        }
        let (rows, found) = (self.rows.len(), std::mem::take(&mut self.found));
        let positions = found.iter().map(|(position, _)| *position).collect();
        let read = move || found.iter().map(|(_, found)| found.read(rows)).collect();
        self.reading = Some(Reading { positions, blocks: spawn_blocking(read) });
    }
}

/// Neighbouring pages that are read from the object.
struct Load {
    pages: usize,
    /// The columns, by position among all.
    columns: Vec<usize>,
    batches: BoxStream<'static, Result<RecordBatch>>,
    /// Rows that were read and are not in a block yet.
    held: Vec<RecordBatch>,
}

/// A page and the rows of it that are left.
struct Selected {
    page: Page,
    rows: RowSet,
    vector: usize,
}

impl CachedRows {
    /// What the cache lacks is fetched from now on.
    fn new(
        reader: &ShardReader,
        read: &RowGroupRead,
        cache: &TableCache,
        assembly: Assembly,
        blocks: &[Range<usize>],
    ) -> Result<Self> {
        let file = reader.file();
        let row_group = u32::try_from(read.row_group).expect("a file has fewer than 2^32 row groups");
        let page = |rows: &Range<usize>| {
            let number = u32::try_from(rows.start / BLOCK_ROWS).expect("a row group has fewer than 2^32 rows");
            let mut page = Page {
                rows: rows.clone(),
                blocks: Vec::with_capacity(read.columns.len()),
                missing: Vec::new(),
                found: Vec::new(),
                reading: None,
                key: BlockKey { shard: file.meta.id, column: types::ColumnId(0), row_group, number },
            };
            for (position, (column, source)) in read.columns.iter().zip(&assembly.columns).enumerate() {
                let is_stored = matches!(source, Source::File(..));
                let key = BlockKey { column: column.id, ..page.key };
                let block = is_stored.then(|| cache.get(&key)).flatten();
                if is_stored && block.is_none() {
                    match cache.find(&key) {
                        Some(found) => page.found.push((position, found)),
                        None => page.missing.push(position),
                    }
                }
                page.blocks.push(block);
            }
            page
        };
        let pages: VecDeque<Page> = blocks.iter().map(page).collect();
        let mut cached = Self {
            cache: cache.clone(),
            reader: reader.clone(),
            row_group: read.row_group,
            fetched_bytes: Arc::clone(&read.fetched_bytes),
            assembly,
            columns: Arc::clone(&read.columns),
            predicates: read.predicates.clone(),
            deleted: read.deleted.clone(),
            removed_rows: Arc::clone(&read.removed_rows),
            batch_rows: read.batch_rows.max(1),
            first_row: file.first_row(read.row_group),
            object: file.meta.object.clone(),
            pages,
            loads: VecDeque::new(),
            current: None,
        };
        cached.loads = cached.loads()?;
        cached.begin_next();
        Ok(cached)
    }

    /// Reads of what is missing: one for each stretch of neighbouring pages.
    fn loads(&self) -> Result<VecDeque<Load>> {
        let mut stretches: Vec<(Range<usize>, usize, Vec<usize>)> = Vec::new();
        for page in self.pages.iter().filter(|page| !page.missing.is_empty()) {
            match stretches.last_mut() {
                Some((rows, pages, missing)) if rows.end == page.rows.start => {
                    rows.end = page.rows.end;
                    *pages += 1;
                    missing.extend(&page.missing);
                }
                _ => stretches.push((page.rows.clone(), 1, page.missing.clone())),
            }
        }
        let load = |(rows, pages, mut columns): (Range<usize>, usize, Vec<usize>)| {
            columns.sort_unstable();
            columns.dedup();
            self.load_of(rows, pages, columns)
        };
        stretches.into_iter().map(load).collect()
    }

    /// Begins to read columns of neighbouring pages from the object.
    fn load_of(&self, rows: Range<usize>, pages: usize, columns: Vec<usize>) -> Result<Load> {
        let rows = self.reader.read(&RowGroupRead {
            row_group: self.row_group,
            rows,
            columns: columns.iter().map(|position| self.columns[*position].clone()).collect(),
            predicates: Vec::new(),
            deleted: None,
            batch_rows: BLOCK_ROWS,
            fetched_bytes: Arc::clone(&self.fetched_bytes),
            removed_rows: Arc::default(),
        })?;
        Ok(Load { pages, columns, batches: rows.batches, held: Vec::new() })
    }

    /// Has the next page read from disk, as far as it lies there.
    fn begin_next(&mut self) {
        if let Some(next) = self.pages.front_mut() {
            next.begin();
        }
    }

    /// The next rows; `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(selected) = &mut self.current {
                if let Some(rows) = selected.take(self.batch_rows) {
                    let page = &self.current.as_ref().expect("looked at above").page;
                    return self.batch(page, &rows).map(Some);
                }
                self.current = None;
            }
            let Some((page, rows)) = self.next_selected().await? else { return Ok(None) };
            self.current = Some(Selected { page, rows, vector: 0 });
        }
    }

    /// The next page, and its rows that are wanted.
    async fn next_selected(&mut self) -> Result<Option<(Page, RowSet)>> {
        let Some(mut page) = self.pages.pop_front() else { return Ok(None) };
        self.begin_next();
        if let Some(reading) = page.reading.take() {
            self.take_read(&mut page, reading).await?;
        }
        if !page.missing.is_empty() {
            self.load(&mut page).await?;
        }
        let rows = self.select(&page)?;
        Ok(Some((page, rows)))
    }

    /// The next page with rows that are wanted; `None` at the end.
    async fn next_page(&mut self) -> Result<Option<PageRows>> {
        while let Some((page, rows)) = self.next_selected().await? {
            if rows.is_empty() {
                continue;
            }
            let column = |(source, block): (&Source, Option<Arc<ColumnBlock>>)| match (source, block) {
                (_, Some(block)) => Ok(PageColumn::Block(block)),
                (Source::Missing(missing), None) => Ok(PageColumn::Same(missing.column(1)?)),
                (_, None) => Err(self.damaged("a column that was not read")),
            };
            let columns = self.assembly.columns.iter().zip(page.blocks).map(column).collect::<Result<Vec<_>>>()?;
            return Ok(Some(PageRows { columns, rows }));
        }
        Ok(None)
    }

    /// Takes the blocks that were read from disk; what is not there after all comes from the object.
    async fn take_read(&mut self, page: &mut Page, reading: Reading) -> Result<()> {
        let blocks = reading.blocks.await.unwrap_or_default().into_iter().chain(std::iter::repeat_with(|| None));
        let mut lost = Vec::new();
        for (position, block) in reading.positions.into_iter().zip(blocks) {
            match block.map(Arc::new) {
                Some(block) => {
                    self.cache.put_found(self.key_of(page, position), &block);
                    page.blocks[position] = Some(block);
                }
                None => lost.push(position),
            }
        }
        if !lost.is_empty() {
            let mut load = self.load_of(page.rows.clone(), 1, lost)?;
            let arrays = load.take(page.rows.len(), &self.object).await?;
            for (position, values) in load.columns.iter().zip(arrays) {
                self.fill(page, *position, &values)?;
            }
        }
        Ok(())
    }

    /// Makes blocks of what the page lacks, and keeps them.
    async fn load(&mut self, page: &mut Page) -> Result<()> {
        let mut load = self.loads.pop_front().expect("what a page lacks is read");
        let arrays = load.take(page.rows.len(), &self.object).await?;
        for (position, values) in load.columns.iter().zip(arrays) {
            if page.missing.contains(position) {
                self.fill(page, *position, &values)?;
            }
        }
        load.pages -= 1;
        if 0 < load.pages {
            self.loads.push_front(load);
        }
        Ok(())
    }

    /// Makes a block of a column's values, and keeps it.
    fn fill(&self, page: &mut Page, position: usize, values: &ArrayRef) -> Result<()> {
        let block = Arc::new(ColumnBlock::of(values)?);
        self.cache.put(self.key_of(page, position), &block);
        page.blocks[position] = Some(block);
        Ok(())
    }

    fn key_of(&self, page: &Page, position: usize) -> BlockKey {
        BlockKey { column: self.columns[position].id, ..page.key }
    }

    /// The rows of the page that are not deleted, and that pass as far as can be told.
    fn select(&self, page: &Page) -> Result<RowSet> {
        let mut rows = RowSet::all(page.rows.len());
        if let Some(deleted) = &self.deleted {
            let first = self.place(page, 0);
            let end = self.place(page, page.rows.len());
            deleted.range(first..end).for_each(|place| rows.remove((place - first) as usize));
        }
        let live = rows.count();
        for predicate in &self.predicates {
            let position = self.columns.iter().position(|column| column.id == predicate.column);
            if rows.is_empty() {
                break;
            }
            if let Some(block) = position.and_then(|position| page.blocks[position].as_ref()) {
                block.select(&predicate.test, &mut rows)?;
            }
        }
        self.removed_rows.fetch_add((live - rows.count()) as u64, Ordering::Relaxed);
        Ok(rows)
    }

    /// The wanted columns of some rows of a page.
    fn batch(&self, page: &Page, rows: &RowSet) -> Result<RecordBatch> {
        let count = rows.count();
        let places = || rows.iter().map(|row| self.place(page, row));
        let fields = self.assembly.schema.fields();
        let columns = self.assembly.columns.iter().zip(&page.blocks).zip(fields);
        let columns = columns.map(|((source, block), field)| match (source, block) {
            (Source::File(..), Some(block)) => block.gather(rows, field.data_type()),
            (Source::File(..), None) => Err(self.damaged("a column that was not read")),
            (Source::Missing(missing), _) => missing.column(count),
            (Source::Ordinal, _) => Ok(ordinals_of(places())),
            (Source::RowId(first), _) => Ok(row_ids_of(*first, places())),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        Ok(RecordBatch::try_new_with_options(SchemaRef::clone(&self.assembly.schema), columns, &options)?)
    }

    /// The place in the shard of a page's row.
    fn place(&self, page: &Page, row: usize) -> u32 {
        let place = self.first_row + (page.rows.start + row) as u64;
        u32::try_from(place).expect("a shard has fewer than 2^32 rows")
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { object: self.object.clone(), reason: reason.to_owned() }
    }
}

impl Load {
    /// The columns of the next so many rows.
    async fn take(&mut self, rows: usize, object: &str) -> Result<Vec<ArrayRef>> {
        let mut held: usize = self.held.iter().map(RecordBatch::num_rows).sum();
        while held < rows {
            let Some(batch) = self.batches.next().await.transpose()? else {
                let reason = format!("{held} rows where {rows} are expected");
                return Err(Error::Damaged { object: object.to_owned(), reason });
            };
            held += batch.num_rows();
            self.held.push(batch);
        }
        let surplus = held - rows;
        let last = self.held.last().map(|last| (last.slice(0, last.num_rows() - surplus), last.clone()));
        let Some((last, whole)) = last else { return Ok(Vec::new()) };
        let count = self.held.len() - 1;
        let mut taken: Vec<RecordBatch> = self.held.drain(..).take(count).collect();
        if 0 < surplus {
            self.held.push(whole.slice(whole.num_rows() - surplus, surplus));
        }
        taken.push(last);
        (0..self.columns.len())
            .map(|column| match taken.as_slice() {
                [batch] => Ok(Arc::clone(batch.column(column))),
                batches => {
                    let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
                    Ok(concat(&parts)?)
                }
            })
            .collect()
    }
}

impl Selected {
    fn take(&mut self, wanted: usize) -> Option<RowSet> {
        take_rows(&self.rows, &mut self.vector, wanted)
    }
}

/// The next rows of a set from a vector on, whole vectors of them: as many as `wanted`, or those of one vector where these are more. Moves
/// the vector on; `None` where no rows are left.
#[must_use]
pub fn take_rows(rows: &RowSet, vector: &mut usize, wanted: usize) -> Option<RowSet> {
    let vectors = rows.vectors();
    while *vector < vectors && rows.is_empty_in(*vector) {
        *vector += 1;
    }
    let start = *vector;
    let mut count = 0;
    while *vector < vectors && (count == 0 || count + rows.count_in(*vector) <= wanted) {
        count += rows.count_in(*vector);
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
