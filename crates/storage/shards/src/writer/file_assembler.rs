//! Assembles a file: row groups, page checksums and footer.

use std::io;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use super::WriteOptions;
use super::chunk::ChunkEncoder;
use super::column_writer::{ColumnChunkEncoder, ColumnWriter, EncodedChunk};
use super::encodings::{self, ColumnEncoding};
use super::schema;
use crate::RowGroupMeta;
use crate::checksums::{CHECKSUMS_KEY, encode, page_checksum};

/// Parquet file whose bytes are taken out row group by row group.
pub(super) struct FileAssembler {
    writer: SerializedFileWriter<Buffer>,
    schema: SchemaRef,
    /// Number of bytes taken out so far.
    bytes_taken: u64,
    checksums: Vec<u32>,
    row_groups: Vec<RowGroupMeta>,
    column_bytes: Vec<u64>,
    column_encodings: Vec<ColumnEncoding>,
}

/// Result of completing a file.
pub(super) struct FinishedFile {
    /// Bytes after the last row group.
    pub(super) tail: Bytes,
    pub(super) row_groups: Vec<RowGroupMeta>,
    /// Size of each column's pages.
    pub(super) column_bytes: Vec<u64>,
}

impl FileAssembler {
    /// Starts a file; the columns have collected statistics of a first page of `rows` rows.
    pub(super) fn create(columns: &[ColumnWriter], rows: usize, options: WriteOptions) -> Result<Self> {
        let column_encodings = encodings::choose_encodings(columns, rows);
        let writer_properties = Arc::new(encodings::writer_properties(columns, &column_encodings, options)?);
        let writer = SerializedFileWriter::new(Buffer::default(), schema::root(columns)?, writer_properties)?;
        let fields: Vec<_> = columns.iter().map(|column| column.field().clone()).collect();
        Ok(Self {
            writer,
            schema: Arc::new(Schema::new(fields)),
            bytes_taken: 0,
            checksums: Vec::new(),
            row_groups: Vec::new(),
            column_bytes: vec![0; columns.len()],
            column_encodings,
        })
    }

    /// Creates the encoders of the next row group.
    pub(super) fn create_encoders(&self, columns: &[ColumnWriter]) -> Result<Vec<ColumnChunkEncoder>> {
        let descr = self.writer.schema_descr();
        let begin = |(position, column): (usize, &ColumnWriter)| {
            ChunkEncoder::begin(&descr.column(position), column.sql_type(), self.column_encodings[position])
        };
        // Lists have one leaf column, too.
        let chunks: Vec<_> = columns.iter().enumerate().map(begin).collect();
        if chunks.iter().all(Option::is_some) {
            return Ok(chunks.into_iter().flatten().map(|chunk| ColumnChunkEncoder::Direct(Box::new(chunk))).collect());
        }
        let writers = ArrowRowGroupWriterFactory::new(&self.writer, Arc::clone(&self.schema))
            .create_column_writers(self.row_groups.len())?;
        let leaf = |(chunk, writer): (Option<ChunkEncoder>, ArrowColumnWriter)| match chunk {
            Some(chunk) => ColumnChunkEncoder::Direct(Box::new(chunk)),
            None => ColumnChunkEncoder::Parquet(Box::new(writer)),
        };
        Ok(chunks.into_iter().zip(writers).map(leaf).collect())
    }

    /// Appends a row group and returns the bytes that it adds to the file.
    pub(super) fn append_row_group(&mut self, chunks: Vec<EncodedChunk>, rows: u64) -> Result<Bytes> {
        let page_sizes: Vec<Vec<usize>> = chunks.iter().map(page_sizes).collect();
        let chunk_bytes =
            chunks.iter().map(|chunk| usize::try_from(chunk.metadata().bytes_written).unwrap_or_default());
        self.writer.inner_mut().0.reserve(chunk_bytes.sum());
        let mut group = self.writer.next_row_group()?;
        for chunk in chunks {
            match chunk {
                EncodedChunk::Chunk(bytes, close) => group.append_column(&bytes, *close)?,
                EncodedChunk::Parquet(chunk) => chunk.append_to_row_group(&mut group)?,
            }
        }
        let metadata = group.close()?;
        let bytes = self.take_written_bytes()?;
        let start = self.bytes_taken - bytes.len() as u64;
        let mut group_bytes = 0;
        for ((chunk, pages), column_bytes) in metadata.columns().iter().zip(page_sizes).zip(&mut self.column_bytes) {
            let (offset, length) = chunk.byte_range();
            let offset = usize::try_from(offset - start).expect("a row group fits memory");
            let length = usize::try_from(length).expect("a row group fits memory");
            // The dictionary page precedes the data pages.
            let dictionary = length - pages.iter().sum::<usize>();
            let mut rest = &bytes[offset..offset + length];
            for size in Some(dictionary).filter(|size| *size != 0).into_iter().chain(pages) {
                let (page, behind) = rest.split_at(size);
                self.checksums.push(page_checksum(page));
                rest = behind;
            }
            *column_bytes += length as u64;
            group_bytes += length as u64;
        }
        self.row_groups.push(RowGroupMeta { rows, bytes: group_bytes });
        Ok(bytes)
    }

    /// Writes the footer.
    pub(super) fn finish(mut self) -> Result<FinishedFile> {
        self.writer.append_key_value_metadata(KeyValue::new(CHECKSUMS_KEY.to_owned(), encode(&self.checksums)));
        self.writer.finish()?;
        let tail = self.take_written_bytes()?;
        Ok(FinishedFile { tail, row_groups: self.row_groups, column_bytes: self.column_bytes })
    }

    /// Takes the bytes written since the last call.
    fn take_written_bytes(&mut self) -> Result<Bytes> {
        self.writer.flush()?;
        let bytes = std::mem::take(&mut self.writer.inner_mut().0);
        self.bytes_taken += bytes.len() as u64;
        Ok(Bytes::from(bytes))
    }
}

/// Returns the sizes of a chunk's data pages, headers included.
fn page_sizes(chunk: &EncodedChunk) -> Vec<usize> {
    let index = chunk.metadata().offset_index.as_ref().expect("the offset index is always written");
    let sizes = index.page_locations().iter().map(|page| page.compressed_page_size);
    sizes.map(|size| usize::try_from(size).expect("a size is not negative")).collect()
}

#[derive(Default)]
struct Buffer(Vec<u8>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
