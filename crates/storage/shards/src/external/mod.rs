//! External Parquet files, written by other programs: read from start to end, as COPY FROM does, or opened like shards
//! for external tables.
//!
//! - `location.rs`: location and state of a file; `object_reader.rs`: access to one in object storage.
//! - `open_as_shard.rs`: opens a file like a shard; `column_stats.rs`: its column statistics; `conversion.rs`: conversion
//!   of its columns to SQL types.
//! - `cache_id.rs`: the id of its blocks in the column cache.

mod cache_id;
mod column_stats;
pub mod conversion;
mod location;
mod object_reader;
mod open_as_shard;

#[cfg(test)]
mod tests;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use objects::Objects;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};

pub use self::cache_id::table_of_cache_id;
pub(crate) use self::column_stats::is_ordered;
pub use self::location::ExternalFileLocation;
use self::object_reader::ObjectFile;
use self::open_as_shard::with_inferred_schema;
use crate::{Error, Result};

/// Number of rows of a batch.
const READ_BATCH_ROWS: usize = 16_384;

/// External Parquet file, opened for reading from start to end.
pub struct ExternalFile {
    name: String,
    builder: ParquetRecordBatchStreamBuilder<Box<dyn AsyncFileReader>>,
}

impl ExternalFile {
    /// Opens a local file.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be opened, [`Error::Decode`] if it is not a Parquet file.
    pub async fn open_path(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = match tokio::fs::File::open(path).await {
            Ok(file) => file,
            Err(source) => return Err(Error::File { file: name, source }),
        };
        Self::open(name, Box::new(file)).await
    }

    /// Opens a file in object storage.
    ///
    /// # Errors
    /// Errors of the storage, [`Error::Decode`] if it is not a Parquet file.
    pub async fn open_object(objects: &Objects, name: &str, bytes: u64) -> Result<Self> {
        let file = ObjectFile::new(objects.clone(), name, bytes);
        Self::open(objects.object_url(name), Box::new(file)).await
    }

    /// Opens the file at a location.
    ///
    /// # Errors
    /// As [`ExternalFile::open_path`] and [`ExternalFile::open_object`].
    pub async fn open_location(place: &ExternalFileLocation) -> Result<Self> {
        match place {
            ExternalFileLocation::Path { path, .. } => Self::open_path(path).await,
            ExternalFileLocation::Object { objects, object } => {
                Self::open_object(objects, &object.name, object.bytes).await
            }
        }
    }

    /// Opens a file in memory; errors refer to it as `name`.
    ///
    /// # Errors
    /// [`Error::Decode`] if it is not a Parquet file.
    pub async fn open_bytes(name: &str, bytes: Bytes) -> Result<Self> {
        Self::open(name.to_owned(), Box::new(Cursor::new(bytes))).await
    }

    async fn open(name: String, mut file: Box<dyn AsyncFileReader>) -> Result<Self> {
        // The writer's Arrow schema is ignored: Parquet's own types are portable.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let opened = ArrowReaderMetadata::load_async(&mut file, options).await;
        match opened.and_then(|metadata| with_inferred_schema(Arc::clone(metadata.metadata()))) {
            Ok(metadata) => {
                Ok(Self { name, builder: ParquetRecordBatchStreamBuilder::new_with_metadata(file, metadata) })
            }
            Err(source) => Err(Error::Decode { object: name, source }),
        }
    }

    /// Returns the name of the file in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file's columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// Reads all rows in order, with the columns at `positions` of the schema, which must ascend.
    ///
    /// # Errors
    /// [`Error::Decode`] if the file is inconsistent; batches may fail in the same way.
    pub fn read(self, positions: &[usize]) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let name = self.name;
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), positions.iter().copied());
        let stream = self.builder.with_projection(mask).with_batch_size(READ_BATCH_ROWS).build();
        let stream = stream.map_err(|source| Error::Decode { object: name.clone(), source })?;
        Ok(stream.map_err(move |source| Error::Decode { object: name.clone(), source }).boxed())
    }
}
