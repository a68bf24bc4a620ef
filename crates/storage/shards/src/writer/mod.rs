//! Writes shards: takes batches, gives a Parquet file in object storage and its metadata.
//!
//! - `encoder.rs`: turns rows into the bytes of a file; `file_assembler.rs`: row groups and footer;
//!   `column_writer.rs`: one column, and its parallel encoding.
//! - `schema.rs`: Parquet types; `encodings.rs`: choice of encodings; `chunk/`: encodes column chunks.

mod chunk;
mod column_writer;
mod encoder;
mod encodings;
mod file_assembler;
mod schema;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use arrow::array::RecordBatch;
use objects::Objects;
use types::ShardId;
use xxhash_rust::xxh3::xxh3_64;

pub use self::encoder::{EncodedFile, Encoder};
use crate::{ColumnDef, Result, ShardMeta};

/// Page and row group sizes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Rows of every page except a row group's last.
    pub page_rows: usize,
    /// Pages of every row group except the last.
    pub row_group_pages: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { page_rows: 65_536, row_group_pages: 16 }
    }
}

/// Shard being written. The object appears, complete, when [`Self::finish`] returns; before that, and after
/// [`Self::abort`] or a drop, it does not exist. After an error it can only be aborted.
pub struct ShardWriter {
    id: ShardId,
    object: String,
    encoder: Encoder,
    upload: objects::ObjectWriter,
}

impl ShardWriter {
    /// Starts a shard of these columns, named `object`. The caller must have announced the upload.
    pub fn create(
        objects: &Objects,
        id: ShardId,
        object: &str,
        columns: &[ColumnDef],
        options: WriteOptions,
    ) -> Result<Self> {
        let upload = objects.writer(object)?;
        Ok(Self { id, object: object.to_owned(), encoder: Encoder::new(object, columns, options), upload })
    }

    /// Appends rows; columns are in order, each of its SQL type's Arrow type.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        for bytes in self.encoder.write(batch).await? {
            self.upload.write(bytes).await?;
        }
        Ok(())
    }

    /// Returns the number of rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.encoder.rows()
    }

    /// Returns the approximate size of the file if it ended here.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.upload.byte_count() + self.encoder.buffered_bytes()
    }

    /// Completes the upload and returns the shard's metadata.
    pub async fn finish(mut self) -> Result<ShardMeta> {
        let encoded = self.encoder.finish().await?;
        self.upload.write(encoded.pages).await?;
        self.upload.write(encoded.tail.clone()).await?;
        Ok(ShardMeta {
            id: self.id,
            object: self.object,
            rows: encoded.rows,
            bytes: self.upload.finish().await?,
            tail_bytes: encoded.tail.len() as u64,
            tail_checksum: xxh3_64(&encoded.tail),
            columns: encoded.columns,
            row_groups: encoded.row_groups,
            row_ids: crate::RowIds::None,
            buckets: None,
        })
    }

    /// Discards the shard and removes uploaded parts.
    pub async fn abort(self) -> Result<()> {
        Ok(self.upload.abort().await?)
    }
}

impl fmt::Debug for ShardWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardWriter").field("object", &self.object).field("rows", &self.rows()).finish_non_exhaustive()
    }
}
