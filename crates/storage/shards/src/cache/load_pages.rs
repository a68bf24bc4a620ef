//! Reads columns of neighbouring pages from an object: decodes them directly into blocks where possible, through Arrow
//! elsewhere.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat;
use blocks::BLOCK_ROWS;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::task::JoinSet;

use super::block::ColumnBlock;
use super::decode::ChunkPageReader;
use crate::reader::{BatchAssembler, ColumnSource, PageChecksums, RowGroupRead, ShardReader, fetch};
use crate::{Error, Result};

/// Read of a run of neighbouring pages, in progress.
pub(super) struct PageLoad {
    /// Number of pages left.
    pub(super) pages_left: usize,
    /// Columns decoded directly into blocks.
    chunks: Option<DirectColumns>,
    /// Columns decoded through Arrow.
    arrays: Option<ArrowColumns>,
}

impl PageLoad {
    /// Starts reading a run of neighbouring pages.
    pub(super) fn begin(
        reader: &ShardReader,
        read: &RowGroupRead,
        assembly: &BatchAssembler,
        missing: &[WantedPage<'_>],
    ) -> Result<Self> {
        let mut columns: Vec<usize> = missing.iter().flat_map(|(_, columns)| *columns).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let (mut chunks, mut others) = (Vec::new(), Vec::new());
        for position in columns {
            let blocks = missing.iter().filter(|(_, columns)| columns.contains(&position));
            let blocks: Vec<Range<usize>> = blocks.map(|(rows, _)| rows.clone()).collect();
            match DirectColumn::open(reader, read, assembly, position, &blocks) {
                Some(chunk) => chunks.push(chunk),
                None => others.push(position),
            }
        }
        let rows = missing.first().map_or(0, |(rows, _)| rows.start)..missing.last().map_or(0, |(rows, _)| rows.end);
        let chunks =
            if chunks.is_empty() { None } else { Some(DirectColumns::begin(reader, read, chunks, rows.clone())) };
        let arrays = if others.is_empty() { None } else { Some(ArrowColumns::begin(reader, read, others, rows)?) };
        Ok(Self { pages_left: missing.len(), chunks, arrays })
    }

    /// Starts reading the rows of one page through Arrow.
    pub(super) fn begin_with_arrow(
        reader: &ShardReader,
        read: &RowGroupRead,
        rows: Range<usize>,
        columns: Vec<usize>,
    ) -> Result<Self> {
        Ok(Self { pages_left: 1, chunks: None, arrays: Some(ArrowColumns::begin(reader, read, columns, rows)?) })
    }

    /// Returns the wanted columns of the next page as blocks, by position; `None` for those too large for a block,
    /// which are to be read through Arrow. Only columns in `kept` are packed for sure.
    pub(super) async fn next(
        &mut self,
        rows: &Range<usize>,
        wanted: &[usize],
        cached: &[usize],
    ) -> Result<Vec<(usize, Option<ColumnBlock>)>> {
        let mut blocks = Vec::new();
        if let Some(chunks) = &mut self.chunks {
            chunks.next(rows, cached, &mut blocks).await?;
        }
        if let Some(arrays) = &mut self.arrays {
            let values = arrays.take(rows.len()).await?;
            // Columns that only other pages of the run lack are read, too, and skipped here.
            for (position, values) in
                arrays.columns.iter().zip(&values).filter(|(position, _)| wanted.contains(position))
            {
                blocks.push((*position, Some(ColumnBlock::from_array(values)?)));
            }
        }
        self.pages_left = self.pages_left.saturating_sub(1);
        Ok(blocks)
    }
}

/// Page to be read: its rows, and the positions of the wanted columns in the read.
pub(super) type WantedPage<'a> = (Range<usize>, &'a [usize]);

/// Groups pages, given in row order, into runs of neighbours, each read by one [`PageLoad`].
pub(super) fn neighbouring_runs<'a>(pages: impl Iterator<Item = WantedPage<'a>>) -> Vec<Vec<WantedPage<'a>>> {
    let mut stretches: Vec<Vec<WantedPage<'a>>> = Vec::new();
    for page in pages {
        match stretches.last_mut() {
            Some(stretch) if stretch.last().is_some_and(|(rows, _)| rows.end == page.0.start) => stretch.push(page),
            _ => stretches.push(vec![page]),
        }
    }
    stretches
}

/// Column that is decoded directly into blocks.
struct DirectColumn {
    position: usize,
    /// Leaf column of the Parquet schema.
    leaf: usize,
    pages: ChunkPageReader,
}

impl DirectColumn {
    /// Opens the column; `None` if it must be decoded through Arrow.
    fn open(
        reader: &ShardReader,
        read: &RowGroupRead,
        assembly: &BatchAssembler,
        position: usize,
        blocks: &[Range<usize>],
    ) -> Option<Self> {
        let ColumnSource::File(_, sql_type) = &assembly.columns[position] else { return None };
        let file = reader.file();
        let leaf = assembly.leaf_of(file, position)?;
        let pages = ChunkPageReader::open(file, read.row_group, leaf, sql_type, blocks)?;
        Some(Self { position, leaf, pages })
    }
}

/// Columns that are decoded directly into blocks, fetched some pages ahead.
struct DirectColumns {
    reader: ShardReader,
    /// Number of rows fetched together.
    fetch_rows: usize,
    chunks: Vec<DirectColumn>,
    pages: Arc<PageChecksums>,
    /// End of the rows fetched so far.
    fetched_end: usize,
    /// End of the rows to read.
    end: usize,
    /// Fetch in progress of the next rows.
    next_fetch: Option<PendingFetch>,
    /// Scratch space for decoded values.
    lanes: Vec<i64>,
}

/// Fetch in progress.
struct PendingFetch {
    end: usize,
    /// Index of the column, and the byte range in the object.
    ranges: Vec<(usize, Range<u64>)>,
    /// The fetching task, aborted when this set is dropped.
    fetching: JoinSet<Result<Vec<Bytes>>>,
}

impl DirectColumns {
    fn begin(reader: &ShardReader, read: &RowGroupRead, chunks: Vec<DirectColumn>, rows: Range<usize>) -> Self {
        let mut leaves: Vec<usize> = chunks.iter().map(|chunk| chunk.leaf).collect();
        leaves.sort_unstable();
        let pages = Arc::new(PageChecksums::new(reader.file(), read.row_group, &leaves, &read.fetched_bytes));
        let mut chunks = Self {
            reader: reader.clone(),
            fetch_rows: reader.fetch_rows(read.row_group, &leaves),
            chunks,
            pages,
            fetched_end: rows.start,
            end: rows.end,
            next_fetch: None,
            lanes: Vec::new(),
        };
        chunks.begin_next(rows.start);
        chunks
    }

    /// Starts fetching the pages from `start` to the next multiple of the rows fetched together.
    fn begin_next(&mut self, start: usize) {
        if self.end <= start {
            return;
        }
        let end = (start / self.fetch_rows + 1).saturating_mul(self.fetch_rows).min(self.end);
        let mut wanted = Vec::new();
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            wanted.extend(chunk.pages.ranges(&(start..end)).into_iter().map(|range| (number, range)));
        }
        let ranges: Vec<Range<u64>> = wanted.iter().map(|(_, range)| range.clone()).collect();
        let (reader, pages) = (self.reader.clone(), Arc::clone(&self.pages));
        let mut fetching = JoinSet::new();
        fetching.spawn(async move { fetch(reader.location(), reader.file(), &pages, &ranges).await });
        self.next_fetch = Some(PendingFetch { end, ranges: wanted, fetching });
    }

    /// Adds the blocks of the next page to `blocks`.
    async fn next(
        &mut self,
        rows: &Range<usize>,
        kept: &[usize],
        blocks: &mut Vec<(usize, Option<ColumnBlock>)>,
    ) -> Result<()> {
        while self.fetched_end <= rows.start {
            let Some(mut ahead) = self.next_fetch.take() else { break };
            self.begin_next(ahead.end);
            if let Some(fetched) = ahead.fetching.join_next().await {
                let fetched = fetched.map_err(|error| Error::TaskEnded { reason: error.to_string() })??;
                for ((chunk, range), bytes) in ahead.ranges.into_iter().zip(fetched) {
                    self.chunks[chunk].pages.add_fetched(range.start, bytes);
                }
            }
            self.fetched_end = ahead.end;
        }
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.pages.is_next(rows)) {
            let is_kept = kept.contains(&chunk.position);
            blocks.push((chunk.position, chunk.pages.next(is_kept, &mut self.lanes)?));
        }
        Ok(())
    }
}

/// Columns that are decoded through Arrow.
struct ArrowColumns {
    object: String,
    /// Positions of the columns in the read.
    columns: Vec<usize>,
    batches: BoxStream<'static, Result<RecordBatch>>,
    /// Decoded rows that are not in a block yet.
    buffered: VecDeque<RecordBatch>,
}

impl ArrowColumns {
    fn begin(reader: &ShardReader, read: &RowGroupRead, columns: Vec<usize>, rows: Range<usize>) -> Result<Self> {
        let read = reader.read(&RowGroupRead {
            row_group: read.row_group,
            rows,
            columns: columns.iter().map(|position| read.columns[*position].clone()).collect(),
            predicates: Vec::new(),
            deleted: None,
            batch_rows: BLOCK_ROWS,
            fetched_bytes: Arc::clone(&read.fetched_bytes),
            removed_rows: Arc::default(),
            predicate_order: Arc::default(),
        })?;
        let object = reader.file().meta.object.clone();
        Ok(Self { object, columns, batches: read.batches, buffered: VecDeque::new() })
    }

    /// Returns the columns of the next `rows` rows.
    async fn take(&mut self, rows: usize) -> Result<Vec<ArrayRef>> {
        let mut held: usize = self.buffered.iter().map(RecordBatch::num_rows).sum();
        while held < rows {
            let Some(batch) = self.batches.next().await.transpose()? else {
                let reason = format!("a page ends after {held} of {rows} rows");
                return Err(Error::Damaged { object: self.object.clone(), reason });
            };
            held += batch.num_rows();
            self.buffered.push_back(batch);
        }
        let (mut taken, mut left) = (Vec::new(), rows);
        while 0 < left
            && let Some(batch) = self.buffered.pop_front()
        {
            let count = left.min(batch.num_rows());
            taken.push(batch.slice(0, count));
            if count < batch.num_rows() {
                self.buffered.push_front(batch.slice(count, batch.num_rows() - count));
            }
            left -= count;
        }
        let column = |column: usize| match taken.as_slice() {
            [batch] => Ok(Arc::clone(batch.column(column))),
            batches => {
                let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
                Ok(concat(&parts)?)
            }
        };
        (0..self.columns.len()).map(column).collect()
    }
}
