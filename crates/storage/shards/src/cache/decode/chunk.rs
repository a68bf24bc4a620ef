//! Iterates over the wanted pages of a column chunk.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use types::SqlType;

use super::dictionary::ChunkDictionary;
use super::page::{PageDecodeError, PageValues};
use super::supported_columns::PageForm;
use crate::cache::block::ColumnBlock;
use crate::reader::{FileKind, OpenFile, catch_decoder_panic};
use crate::{Error, Result};

/// Remaining wanted pages of a column chunk.
pub(in crate::cache) struct ChunkPageReader {
    object: String,
    form: PageForm,
    is_nullable: bool,
    /// Pages that were fetched and not read yet.
    fetched: Arc<FetchedPages>,
    reader: SerializedPageReader<FetchedPages>,
    /// Byte range of the dictionary page until it has been requested.
    dictionary_bytes: Option<Range<u64>>,
    /// True until the dictionary page has been read.
    dictionary_pending: bool,
    dictionary: Option<ChunkDictionary>,
    /// Rows and byte range of each remaining page.
    remaining_pages: VecDeque<(Range<usize>, Range<u64>)>,
}

impl ChunkPageReader {
    /// Opens the pages that hold the rows of these blocks; `None` if they must be decoded through Arrow.
    pub(in crate::cache) fn open(
        file: &OpenFile,
        row_group: usize,
        leaf: usize,
        sql_type: &SqlType,
        blocks: &[Range<usize>],
    ) -> Option<Self> {
        let metadata = file.metadata.metadata();
        let chunk = metadata.row_group(row_group).column(leaf);
        let root = file.metadata.parquet_schema().get_column_root_idx(leaf);
        let field = file.metadata.schema().fields().get(root)?;
        let is_ours = matches!(file.file_kind, FileKind::Shard { .. }) && *field.data_type() == sql_type.arrow_type();
        let form = PageForm::from_chunk(chunk, field.data_type()).filter(|_| is_ours)?;
        let locations = metadata.offset_index()?.get(row_group)?.get(leaf)?.page_locations();
        let rows = file.page_rows(row_group, leaf);
        let mut wanted = Vec::with_capacity(blocks.len() + 1);
        let mut left = VecDeque::with_capacity(blocks.len());
        for block in blocks {
            let place = rows.binary_search_by_key(&block.start, |rows| rows.start).ok()?;
            if rows[place] != *block {
                return None;
            }
            left.push_back((block.clone(), page_byte_range(&locations[place])?));
            wanted.push(locations[place].clone());
        }
        let first = u64::try_from(locations.first()?.offset).ok()?;
        let dictionary = match chunk.dictionary_page_offset() {
            Some(start) => Some(u64::try_from(start).ok().filter(|start| *start < first)?..first),
            None => None,
        };
        if let Some(bytes) = &dictionary {
            let offset = i64::try_from(bytes.start).ok()?;
            let compressed_page_size = i32::try_from(bytes.end - bytes.start).ok()?;
            wanted.insert(0, PageLocation { offset, compressed_page_size, first_row_index: 0 });
        }
        // The reader would take bytes between the chunk's start and the first page for a dictionary; here all pages are
        // listed explicitly.
        let begin = wanted.first()?.offset;
        let described = chunk.clone().into_builder().set_dictionary_page_offset(None).set_data_page_offset(begin);
        let fetched = Arc::new(FetchedPages::default());
        let reader =
            SerializedPageReader::new(Arc::clone(&fetched), &described.build().ok()?, rows.len(), Some(wanted));
        Some(Self {
            object: file.meta.object.clone(),
            form,
            is_nullable: 0 < chunk.column_descr().max_def_level(),
            fetched,
            reader: reader.ok()?,
            dictionary_pending: dictionary.is_some(),
            dictionary_bytes: dictionary,
            dictionary: None,
            remaining_pages: left,
        })
    }

    /// Returns true if the next page has these rows.
    pub(in crate::cache) fn is_next(&self, rows: &Range<usize>) -> bool {
        self.remaining_pages.front().is_some_and(|(next, _)| next == rows)
    }

    /// Returns the byte ranges of the pages that start within `rows`, with the dictionary page if it was not requested
    /// yet.
    pub(in crate::cache) fn ranges(&mut self, rows: &Range<usize>) -> Vec<Range<u64>> {
        let pages =
            self.remaining_pages.iter().filter(|(page, _)| rows.contains(&page.start)).map(|(_, bytes)| bytes.clone());
        let pages: Vec<_> = pages.collect();
        if pages.is_empty() { pages } else { self.dictionary_bytes.take().into_iter().chain(pages).collect() }
    }

    /// Adds the fetched bytes of a page or of the dictionary page.
    pub(in crate::cache) fn add_fetched(&self, start: u64, bytes: Bytes) {
        self.fetched.0.lock().insert(start, bytes);
    }

    /// Decodes the next page; `None` if it would be too large for a block. It is packed for sure only if `is_hot`.
    /// `lanes` is scratch space.
    pub(in crate::cache) fn next(&mut self, will_cache: bool, lanes: &mut Vec<i64>) -> Result<Option<ColumnBlock>> {
        let Some((rows, _)) = self.remaining_pages.pop_front() else {
            return Err(self.damaged("a column chunk lacks pages"));
        };
        if std::mem::take(&mut self.dictionary_pending) {
            let Page::DictionaryPage { buf, num_values, encoding, .. } = self.read_page()? else {
                return Err(self.damaged("a column chunk lacks its dictionary page"));
            };
            if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                return Err(self.damaged("a dictionary page has an unknown encoding"));
            }
            let dictionary = ChunkDictionary::decode(&buf, num_values as usize, self.form);
            self.dictionary = Some(dictionary.map_err(|malformed| self.damaged(malformed.0))?);
        }
        let page = self.read_page()?;
        // Values of the previous page are overwritten.
        lanes.resize(rows.len(), 0);
        let values = PageValues::parse(&page, rows.len(), self.is_nullable, lanes);
        let dictionary = self.dictionary.as_ref();
        let block = values.map_err(PageDecodeError::from).and_then(|values| {
            let passing = if will_cache { None } else { values.to_uncached(self.form, dictionary)? };
            passing
                .map_or_else(|| values.to_block(self.form, dictionary, lanes), |page| Ok(ColumnBlock::Uncached(page)))
        });
        match block {
            Ok(block) => Ok(Some(block)),
            Err(
                PageDecodeError::Block(blocks::Error::TooLarge(_))
                | PageDecodeError::Other(Error::Block(blocks::Error::TooLarge(_))),
            ) => Ok(None),
            Err(PageDecodeError::Malformed(malformed)) => Err(self.damaged(malformed.0)),
            Err(PageDecodeError::Block(error)) => Err(error.into()),
            Err(PageDecodeError::Other(error)) => Err(error),
        }
    }

    /// Reads the next page.
    fn read_page(&mut self) -> Result<Page> {
        let read = catch_decoder_panic(|| self.reader.get_next_page());
        let page = read.map_err(|source| Error::Decode { object: self.object.clone(), source })?;
        page.ok_or_else(|| self.damaged("a column chunk has fewer pages than its index says"))
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { object: self.object.clone(), reason: reason.to_owned() }
    }
}

/// Returns the byte range of a page.
fn page_byte_range(page: &PageLocation) -> Option<Range<u64>> {
    let start = u64::try_from(page.offset).ok()?;
    Some(start..start.checked_add(u64::try_from(page.compressed_page_size).ok()?)?)
}

/// Fetched pages by offset, each until it is read.
#[derive(Default)]
struct FetchedPages(Mutex<HashMap<u64, Bytes>>);

impl Length for FetchedPages {
    fn len(&self) -> u64 {
        u64::MAX
    }
}

impl ChunkReader for FetchedPages {
    type T = io::Empty;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Err(ParquetError::General(format!("byte {start} is not the start of a fetched page")))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let page = self.0.lock().remove(&start).filter(|page| page.len() == length);
        page.ok_or_else(|| ParquetError::EOF(format!("no page of {length} bytes at {start}")))
    }
}
