//! Reads an object by ranges for Parquet's asynchronous reader.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use objects::Objects;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

/// An object of known size.
pub(super) struct ObjectFile {
    objects: Objects,
    name: String,
    bytes: u64,
}

impl ObjectFile {
    pub(super) fn new(objects: Objects, name: &str, bytes: u64) -> Self {
        Self { objects, name: name.to_owned(), bytes }
    }
}

impl AsyncFileReader for ObjectFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move { self.objects.get_range(&self.name, range).await.map_err(failed) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move { self.objects.get_ranges(&self.name, &ranges).await.map_err(failed) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        async move {
            let bytes = self.bytes;
            let metadata = ParquetMetaDataReader::new().load_and_finish(self, bytes).await?;
            Ok(Arc::new(metadata))
        }
        .boxed()
    }
}

fn failed(error: objects::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}
