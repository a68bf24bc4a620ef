//! Opens a shard: reads, verifies and parses its tail.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use objects::Objects;
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};
use types::ColumnId;
use xxhash_rust::xxh3::xxh3_64;

use super::{FileKind, OpenFile};
use crate::{Checksums, Error, Result, ShardMeta};

/// Opens the shard that `meta` describes.
pub(super) async fn open(objects: &Objects, meta: &Arc<ShardMeta>) -> Result<OpenFile> {
    let start =
        meta.bytes.checked_sub(meta.tail_bytes).ok_or_else(|| damaged(meta, "its tail is longer than the file"))?;
    let tail = objects.get_range(&meta.object, start..meta.bytes).await?;
    if xxh3_64(&tail) != meta.tail_checksum {
        return Err(damaged(meta, "its footer does not have the checksum it was written with"));
    }
    let failed = |source| Error::Decode { object: meta.object.clone(), source };
    let mut decoder = ParquetMetaDataPushDecoder::try_new(meta.bytes)
        .map_err(failed)?
        .with_page_index_policy(PageIndexPolicy::Required);
    decoder.push_range(start..meta.bytes, tail).map_err(failed)?;
    let DecodeResult::Data(metadata) = decoder.try_decode().map_err(failed)? else {
        return Err(damaged(meta, "its page indexes are outside its tail"));
    };
    let is_described = metadata.num_row_groups() == meta.row_groups.len()
        && metadata
            .row_groups()
            .iter()
            .zip(&meta.row_groups)
            .all(|(found, known)| u64::try_from(found.num_rows()) == Ok(known.rows));
    if !is_described {
        return Err(damaged(meta, "its row groups differ from those in the catalog"));
    }
    let checksums = Checksums::read(&metadata).ok_or_else(|| damaged(meta, "its pages have no checksums"))?;
    let ids = field_ids(&metadata);
    let metadata = with_string_views(Arc::new(metadata)).map_err(failed)?;
    Ok(OpenFile { meta: Arc::clone(meta), metadata, file_kind: FileKind::Shard { checksums }, ids })
}

impl OpenFile {
    /// Returns an error if the file lacks the row group.
    pub(crate) fn check_row_group(&self, row_group: usize) -> Result<()> {
        if row_group < self.metadata.metadata().num_row_groups() {
            return Ok(());
        }
        Err(damaged(&self.meta, "it lacks a row group of its metadata"))
    }
}

fn damaged(meta: &ShardMeta, reason: &str) -> Error {
    Error::Damaged { object: meta.object.clone(), reason: reason.to_owned() }
}

/// Returns the field id of each root column.
fn field_ids(metadata: &ParquetMetaData) -> Vec<Option<ColumnId>> {
    let columns = metadata.file_metadata().schema_descr().root_schema().get_fields();
    let id = |info: &parquet::schema::types::BasicTypeInfo| info.has_id().then(|| ColumnId(info.id()));
    columns.iter().map(|column| id(column.get_basic_info())).collect()
}

/// Infers the Arrow schema from Parquet's types alone, with strings as string views.
fn with_string_views(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, ParquetError> {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let inferred = ArrowReaderMetadata::try_new(Arc::clone(&metadata), plain)?;
    let fields = inferred.schema().fields().iter().map(|field| to_string_view_field(field));
    let schema = Schema::new(fields.collect::<Vec<_>>()).with_metadata(inferred.schema().metadata().clone());
    ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new().with_schema(Arc::new(schema)))
}

fn to_string_view_field(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::List(element) => DataType::List(Arc::new(to_string_view_field(element))),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}
