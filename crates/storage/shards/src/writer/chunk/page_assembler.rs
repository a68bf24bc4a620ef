//! Assembles the pages of a column chunk: the dictionary page first, then the data pages.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::compress::compress;
use crate::writer::encodings::ZSTD_LEVEL;

/// Approximate size of a page header.
const HEADER_BYTES: usize = 64;

/// Data pages of a chunk, compressed if the column is.
pub(super) struct PageAssembler {
    is_compressed: bool,
    pages: Vec<DataPage>,
    bytes: usize,
}

/// Encoded data page.
struct DataPage {
    rows: usize,
    encoding: Encoding,
    bytes: Vec<u8>,
    /// Size before compression.
    uncompressed_bytes: usize,
}

impl PageAssembler {
    pub(super) fn new(is_compressed: bool) -> Self {
        Self { is_compressed, pages: Vec::new(), bytes: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn add(&mut self, rows: usize, encoding: Encoding, bytes: Vec<u8>) -> Result<()> {
        let uncompressed_bytes = bytes.len();
        let bytes = self.maybe_compress(bytes)?;
        self.bytes += bytes.len();
        self.pages.push(DataPage { rows, encoding, bytes, uncompressed_bytes });
        Ok(())
    }

    /// Completes the chunk; returns its bytes and its metadata for the footer. `dictionary` is the number of entries
    /// and the content of the dictionary page.
    pub(super) fn finish(
        self,
        column: ColumnDescPtr,
        dictionary: Option<(usize, Vec<u8>)>,
        bounds: Option<(ColumnIndexMetaData, Statistics)>,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let is_used = self.pages.iter().any(|page| page.encoding == Encoding::RLE_DICTIONARY);
        let dictionary = match dictionary.filter(|_| is_used) {
            Some((entries, plain)) => Some((entries, plain.len(), self.maybe_compress(plain)?)),
            None => None,
        };
        let dictionary_bytes = dictionary.as_ref().map_or(0, |(.., bytes)| bytes.len());
        let room = self.bytes + dictionary_bytes + HEADER_BYTES * (self.pages.len() + 1);
        let mut sink = TrackedWrite::new(Vec::with_capacity(room));
        let mut written =
            ChunkPageWriter { writer: SerializedPageWriter::new(&mut sink), uncompressed_bytes: 0, stats: Vec::new() };
        let mut dictionary_at = None;
        if let Some((entries, uncompressed_bytes, bytes)) = dictionary {
            let page = Page::DictionaryPage {
                buf: Bytes::from(bytes),
                num_values: to_value_count(entries)?,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            dictionary_at = Some(written.add(page, uncompressed_bytes)?.0);
        }
        let rows: usize = self.pages.iter().map(|page| page.rows).sum();
        let mut offsets = OffsetIndexBuilder::new();
        let mut data_at = None;
        let compression = match self.is_compressed {
            true => Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?),
            false => Compression::UNCOMPRESSED,
        };
        for page in self.pages {
            let data = Page::DataPage {
                buf: Bytes::from(page.bytes),
                num_values: to_value_count(page.rows)?,
                encoding: page.encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            let (offset, bytes) = written.add(data, page.uncompressed_bytes)?;
            data_at.get_or_insert(offset);
            offsets.append_offset_and_size(offset, bytes);
            offsets.append_row_count(page.rows as i64);
        }
        let ChunkPageWriter { uncompressed_bytes, stats, .. } = written;
        let encodings = stats.iter().map(|pages| pages.encoding).chain([Encoding::RLE]).collect();
        let bytes = Bytes::from(sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed_bytes as i64)
            .set_num_values(rows as i64)
            .set_data_page_offset(data_at.unwrap_or_default())
            .set_dictionary_page_offset(dictionary_at);
        let (column_index, metadata) = match bounds {
            Some((index, statistics)) => (Some(index), metadata.set_statistics(statistics)),
            None => (None, metadata),
        };
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index,
            offset_index: Some(offsets.build()),
        };
        Ok((bytes, close))
    }

    /// Compresses a page if the column is compressed.
    fn maybe_compress(&self, page: Vec<u8>) -> Result<Vec<u8>> {
        if self.is_compressed { compress(&page) } else { Ok(page) }
    }
}

/// Writer of pages with their headers.
struct ChunkPageWriter<'a> {
    writer: SerializedPageWriter<'a, Vec<u8>>,
    uncompressed_bytes: usize,
    stats: Vec<PageEncodingStats>,
}

impl ChunkPageWriter<'_> {
    /// Writes a page; returns its offset and its size with the header.
    fn add(&mut self, page: Page, uncompressed_bytes: usize) -> Result<(i64, i32)> {
        let (page_type, encoding) = (page.page_type(), page.encoding());
        let spec = self.writer.write_page(CompressedPage::new(page, uncompressed_bytes))?;
        self.uncompressed_bytes += spec.uncompressed_size;
        match self.stats.last_mut() {
            Some(last) if last.page_type == page_type && last.encoding == encoding => last.count += 1,
            _ => self.stats.push(PageEncodingStats { page_type, encoding, count: 1 }),
        }
        let bytes = i32::try_from(spec.compressed_size).map_err(|_| page_too_large())?;
        Ok((i64::try_from(spec.offset).map_err(|_| page_too_large())?, bytes))
    }
}

fn to_value_count(values: usize) -> Result<u32> {
    u32::try_from(values).map_err(|_| page_too_large())
}

fn page_too_large() -> ParquetError {
    ParquetError::General("a page is larger than Parquet allows".to_owned())
}
