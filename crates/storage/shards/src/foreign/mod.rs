//! Parquet files that others wrote: read once from their start to their end, as COPY FROM does, or opened like shards, whose hot pages are kept.

mod facts;
pub mod fit;
mod id;
mod object;
mod open;
mod place;

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

pub(crate) use self::facts::is_ordered;
pub use self::id::table_of;
use self::object::ObjectFile;
use self::open::with_hints;
pub use self::place::ForeignPlace;
use crate::{Error, Result};

/// Rows of a batch.
const BATCH_ROWS: usize = 16_384;

/// A Parquet file, opened.
pub struct ForeignFile {
    name: String,
    builder: ParquetRecordBatchStreamBuilder<Box<dyn AsyncFileReader>>,
}

impl ForeignFile {
    /// Opens a file of this machine.
    ///
    /// # Errors
    /// [`Error::File`] where it cannot be opened, [`Error::Decode`] for what is no Parquet file.
    pub async fn open_path(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = match tokio::fs::File::open(path).await {
            Ok(file) => file,
            Err(source) => return Err(Error::File { file: name, source }),
        };
        Self::open(name, Box::new(file)).await
    }

    /// Opens an object.
    ///
    /// # Errors
    /// What the storage reports, [`Error::Decode`] for what is no Parquet file.
    pub async fn open_object(objects: &Objects, name: &str, bytes: u64) -> Result<Self> {
        let file = ObjectFile::new(objects.clone(), name, bytes);
        Self::open(objects.object_url(name), Box::new(file)).await
    }

    /// Opens the file at a place.
    ///
    /// # Errors
    /// As [`ForeignFile::open_path`] and [`ForeignFile::open_object`].
    pub async fn open_place(place: &ForeignPlace) -> Result<Self> {
        match place {
            ForeignPlace::Path { path, .. } => Self::open_path(path).await,
            ForeignPlace::Object { objects, object } => Self::open_object(objects, &object.name, object.bytes).await,
        }
    }

    /// Opens a file that lies in memory; `name` is what errors call it.
    ///
    /// # Errors
    /// [`Error::Decode`] for what is no Parquet file.
    pub async fn open_bytes(name: &str, bytes: Bytes) -> Result<Self> {
        Self::open(name.to_owned(), Box::new(Cursor::new(bytes))).await
    }

    async fn open(name: String, mut file: Box<dyn AsyncFileReader>) -> Result<Self> {
        // What the writer thought of as Arrow types is of no interest: Parquet's own types are for all.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let opened = ArrowReaderMetadata::load_async(&mut file, options).await;
        match opened.and_then(|metadata| with_hints(Arc::clone(metadata.metadata()))) {
            Ok(metadata) => {
                Ok(Self { name, builder: ParquetRecordBatchStreamBuilder::new_with_metadata(file, metadata) })
            }
            Err(source) => Err(Error::Decode { object: name, source }),
        }
    }

    /// What errors call the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// The rows in their order, with the columns at `positions` of the schema, ascending.
    ///
    /// # Errors
    /// [`Error::Decode`] where the file contradicts itself; so do batches.
    pub fn read(self, positions: &[usize]) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let name = self.name;
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), positions.iter().copied());
        let stream = self.builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        let stream = stream.map_err(|source| Error::Decode { object: name.clone(), source })?;
        Ok(stream.map_err(move |source| Error::Decode { object: name.clone(), source }).boxed())
    }
}
