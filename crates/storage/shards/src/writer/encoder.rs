//! Turns rows into the bytes of a Parquet file. Rows are buffered until they fill a page; each page is encoded column
//! by column on several cores; the bytes of a row group are returned when it is full.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::errors::ParquetError;

use super::WriteOptions;
use super::column_writer::{ColumnWriter, for_each_column};
use super::file_assembler::FileAssembler;
use crate::stats::heavy_hitters;
use crate::{ColumnDef, ColumnStats, Error, Result, RowGroupMeta, RowSample};

/// Size of the sample in which frequent values are searched.
const SAMPLE_ROWS: usize = 8_192;
/// Buffered values of this size are encoded before they fill a page.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// Parquet file under construction. After an error it cannot be continued.
pub struct Encoder {
    /// Name of the file in errors.
    name: String,
    write_options: WriteOptions,
    /// Columns; empty while they are being encoded, and after an error.
    columns: Vec<ColumnWriter>,
    column_count: usize,
    /// The file, created when the first page's statistics have determined the encodings.
    file: Option<FileAssembler>,
    /// Buffered rows of the current page.
    pending_batches: Vec<RecordBatch>,
    pending_rows: usize,
    pending_bytes: usize,
    /// Encoded rows of the current row group.
    row_group_rows: usize,
    rows: u64,
    row_sample: RowSample,
}

/// Last bytes of a file, and its statistics.
pub struct EncodedFile {
    /// Pages of the last row group.
    pub pages: Bytes,
    /// Bytes after it: page indexes and footer.
    pub tail: Bytes,
    pub rows: u64,
    pub columns: Vec<ColumnStats>,
    pub row_groups: Vec<RowGroupMeta>,
}

impl Encoder {
    /// Starts a file of these columns; `name` identifies it in errors.
    #[must_use]
    pub fn new(name: &str, columns: &[ColumnDef], options: WriteOptions) -> Self {
        let fields: Vec<_> =
            columns.iter().map(|column| column.sql_type.arrow_field(&column.name, column.nullable)).collect();
        Self {
            name: name.to_owned(),
            write_options: options,
            columns: columns.iter().map(ColumnWriter::new).collect(),
            column_count: columns.len(),
            file: None,
            pending_batches: Vec::new(),
            pending_rows: 0,
            pending_bytes: 0,
            row_group_rows: 0,
            rows: 0,
            row_sample: RowSample::new(Arc::new(Schema::new(fields)), SAMPLE_ROWS),
        }
    }

    /// Appends rows; columns are in order, each of its SQL type's Arrow type. Returns the bytes of the row groups
    /// completed by them.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        if batch.num_columns() != self.column_count {
            let (found, wanted) = (batch.num_columns(), self.column_count);
            return Err(ArrowError::SchemaError(format!(
                "a batch has {found} columns, but the shard file has {wanted}"
            ))
            .into());
        }
        self.row_sample.add(batch)?;
        let mut complete = Vec::new();
        let mut start = 0;
        while start < batch.num_rows() {
            let length = self.page_rows_left().min(batch.num_rows() - start);
            let part = batch.slice(start, length);
            start += length;
            self.pending_rows += length;
            self.pending_bytes += value_bytes(&part);
            self.pending_batches.push(part);
            if self.page_rows_left() == self.write_options.page_rows || PENDING_BYTES_MAX <= self.pending_bytes {
                self.encode_pending().await?;
            }
            if self.row_group_rows == self.write_options.page_rows * self.write_options.row_group_pages {
                complete.push(self.end_row_group().await?);
            }
        }
        Ok(complete)
    }

    /// Returns the number of rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows + self.pending_rows as u64
    }

    /// Returns the approximate number of bytes not returned yet.
    #[must_use]
    pub fn buffered_bytes(&self) -> u64 {
        let encoded: usize = self.columns.iter().map(ColumnWriter::bytes).sum();
        // Encoding halves most values.
        (encoded + self.pending_bytes / 2) as u64
    }

    /// Completes the file.
    pub async fn finish(mut self) -> Result<EncodedFile> {
        if 0 < self.pending_rows || self.file.is_none() {
            self.encode_pending().await?;
        }
        let pages = if 0 < self.row_group_rows { self.end_row_group().await? } else { Bytes::new() };
        let file = self.file.take().expect("created with page one");
        let ended = file.finish().map_err(|source| Error::Encode { object: self.name.clone(), source })?;
        let sample = self.row_sample.finish()?;
        let mut columns = Vec::with_capacity(self.columns.len());
        for ((column, values), bytes) in self.columns.into_iter().zip(sample.columns()).zip(ended.column_bytes) {
            let heavy_hitters = heavy_hitters(values, column.sql_type(), self.rows)?;
            columns.push(column.into_stats_collector().finish(bytes, heavy_hitters));
        }
        Ok(EncodedFile { pages, tail: ended.tail, rows: self.rows, columns, row_groups: ended.row_groups })
    }

    /// Returns the number of rows that still fit the current page: a complete page if the last one is full.
    fn page_rows_left(&self) -> usize {
        self.write_options.page_rows - (self.row_group_rows + self.pending_rows) % self.write_options.page_rows
    }

    /// Encodes the buffered rows as a page, or as part of one.
    async fn encode_pending(&mut self) -> Result<()> {
        self.pending_bytes = 0;
        let rows = std::mem::take(&mut self.pending_rows);
        let batches = std::mem::take(&mut self.pending_batches);
        let mut columns = self.take_columns()?;
        for (index, column) in columns.iter_mut().enumerate() {
            column.current_page_arrays =
                batches.iter().map(|batch| Arc::clone(batch.column(index))).collect::<Vec<ArrayRef>>();
        }
        let failed = |source: ParquetError| Error::Encode { object: self.name.clone(), source };
        let is_first = self.file.is_none();
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                columns = for_each_column(columns, rows, ColumnWriter::collect_stats).await?;
                none.insert(FileAssembler::create(&columns, rows, self.write_options).map_err(failed)?)
            }
        };
        if self.row_group_rows == 0 {
            let leaves = file.create_encoders(&columns).map_err(failed)?;
            columns.iter_mut().zip(leaves).for_each(|(column, leaf)| column.chunk_encoder = Some(leaf));
        }
        let encode = if is_first { ColumnWriter::encode } else { ColumnWriter::collect_and_encode };
        self.columns = for_each_column(columns, rows, encode).await?;
        self.rows += rows as u64;
        self.row_group_rows += rows;
        Ok(())
    }

    /// Completes the current row group and returns its bytes.
    async fn end_row_group(&mut self) -> Result<Bytes> {
        let rows = std::mem::take(&mut self.row_group_rows);
        let columns = self.take_columns()?;
        self.columns = for_each_column(columns, rows, ColumnWriter::close).await?;
        let chunks = self.columns.iter_mut().map(|column| column.encoded_chunk.take().expect("closed above")).collect();
        let file = self.file.as_mut().expect("created with page one");
        let pages = file.append_row_group(chunks, rows as u64);
        pages.map_err(|source| Error::Encode { object: self.name.clone(), source })
    }

    fn take_columns(&mut self) -> Result<Vec<ColumnWriter>> {
        let columns = std::mem::take(&mut self.columns);
        if columns.len() == self.column_count {
            Ok(columns)
        } else {
            Err(Error::TaskEnded { reason: "an earlier page could not be written".to_owned() })
        }
    }
}

/// Returns the size of the values; the memory size of batches is no measure, because they may share buffers.
fn value_bytes(batch: &RecordBatch) -> usize {
    let of_column = |values: &ArrayRef| match values.data_type() {
        DataType::Utf8View => values.as_string_view().lengths().map(|length| length as usize).sum(),
        _ => values.to_data().get_slice_memory_size().unwrap_or(0),
    };
    batch.columns().iter().map(of_column).sum()
}
