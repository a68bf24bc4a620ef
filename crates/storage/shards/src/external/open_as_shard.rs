//! Opens an external file like a shard: reads its footer, matches its columns and converts its statistics.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};
use types::{ColumnId, ShardId, SqlType};

use super::{ExternalFileLocation, column_stats, conversion};
use crate::reader::{FileKind, FileLocation, OpenFile, ShardReader, catch_decoder_panic};
use crate::{ColumnDef, Error, Result, RowGroupMeta, RowIds, ShardMeta};

#[cfg(test)]
mod tests;

/// Size of the first read at the end of a file, which covers most footers.
const TAIL_BYTES: u64 = 64 << 10;
/// Size of an empty file: eight bytes around its footer and four before its pages.
const FILE_BYTES_MIN: u64 = 12;

impl ShardReader {
    /// Opens an external file. `id` identifies its blocks in the cache and must change with the file's content; the
    /// file must have all of `columns`, with types that [`is_convertible`] accepts.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::File`] and errors of the storage; [`Error::Decode`] and [`Error::NotReadable`] if it
    /// is not a Parquet file; [`Error::NoColumn`] and [`Error::ColumnType`].
    pub async fn open_external_file(place: ExternalFileLocation, id: ShardId, columns: &[ColumnDef]) -> Result<Self> {
        let object = place.name();
        let metadata = Arc::new(read_footer(&place, &object).await?);
        let decoded = |source| Error::Decode { object: object.clone(), source };
        check_metadata(&metadata, place.bytes(), &object)?;
        let metadata = catch_decoder_panic(|| with_inferred_schema(metadata)).map_err(decoded)?;
        let (ids, types) = match_columns(&metadata, columns, &object)?;
        let groups = metadata.metadata().row_groups();
        let row_groups: Vec<RowGroupMeta> = groups
            .iter()
            .map(|group| RowGroupMeta {
                rows: count_to_u64(group.num_rows()),
                bytes: count_to_u64(group.compressed_size()),
            })
            .collect();
        let meta = ShardMeta {
            id,
            rows: row_groups.iter().map(|group| group.rows).sum(),
            bytes: place.bytes(),
            tail_bytes: 0,
            tail_checksum: 0,
            columns: Vec::new(),
            row_groups,
            row_ids: RowIds::None,
            buckets: None,
            object,
        };
        let mut file = OpenFile { meta: Arc::new(meta), metadata, file_kind: FileKind::External { types }, ids };
        let facts = columns.iter().map(|column| column_stats::collect(&file, column.id)).collect::<Result<Vec<_>>>()?;
        file.meta = Arc::new(ShardMeta { columns: facts, ..ShardMeta::clone(&file.meta) });
        Ok(Self::new(FileLocation::External(place), file))
    }
}

/// Reads and parses the footer.
async fn read_footer(place: &ExternalFileLocation, object: &str) -> Result<ParquetMetaData> {
    let bytes = place.bytes();
    let failed = |source| Error::Decode { object: object.to_owned(), source };
    if bytes < FILE_BYTES_MIN {
        let reason = "it is too short to be a Parquet file".to_owned();
        return Err(Error::NotReadable { object: object.to_owned(), reason });
    }
    let decoder = ParquetMetaDataPushDecoder::try_new(bytes).map_err(failed)?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Optional);
    let mut wanted: Vec<Range<u64>> = iter::once(bytes.saturating_sub(TAIL_BYTES)..bytes).collect();
    loop {
        let read = place.get_ranges(&wanted).await?;
        decoder.push_ranges(wanted, read).map_err(failed)?;
        match catch_decoder_panic(|| decoder.try_decode()).map_err(failed)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => wanted = ranges,
            DecodeResult::Finished => {
                let reason = "its footer ends early".to_owned();
                return Err(Error::NotReadable { object: object.to_owned(), reason });
            }
        }
    }
}

/// Checks that row counts and offsets are possible in a file of `bytes` bytes, since later code relies on them.
fn check_metadata(metadata: &ParquetMetaData, bytes: u64, object: &str) -> Result<()> {
    let damaged = |reason: &str| Err(Error::Damaged { object: object.to_owned(), reason: reason.to_owned() });
    let lies_within = |start: i64, length: i64| {
        let end =
            u64::try_from(start).ok().zip(u64::try_from(length).ok()).and_then(|(at, length)| at.checked_add(length));
        end.is_some_and(|end| end <= bytes)
    };
    let mut rows = 0_i64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        for (leaf, chunk) in group.columns().iter().enumerate() {
            let is_flat = chunk.column_descr().max_rep_level() == 0;
            if group.num_rows() < 0 || (is_flat && chunk.num_values() != group.num_rows()) {
                return damaged("its columns have other numbers of rows than its row groups");
            }
            let data = chunk.data_page_offset();
            let start = chunk.dictionary_page_offset().unwrap_or(data);
            let locations =
                metadata.offset_index().map_or(&[][..], |index| index[number][leaf].page_locations().as_slice());
            let is_sound = lies_within(start, chunk.compressed_size())
                && start <= data
                && locations.iter().all(|page| lies_within(page.offset, i64::from(page.compressed_page_size)))
                && locations.is_sorted_by_key(|page| page.first_row_index);
            if !is_sound {
                return damaged("its pages have impossible offsets");
            }
        }
        rows = rows.saturating_add(group.num_rows());
    }
    if u32::try_from(rows).is_err() {
        let reason = "it has more than 4294967295 rows".to_owned();
        return Err(Error::NotReadable { object: object.to_owned(), reason });
    }
    Ok(())
}

/// Infers the Arrow schema from Parquet's types alone, with strings as string views, and INT96 timestamps in
/// microseconds, which reach more years than nanoseconds.
pub(super) fn with_inferred_schema(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, ParquetError> {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let inferred = ArrowReaderMetadata::try_new(Arc::clone(&metadata), plain)?;
    let parquet = metadata.file_metadata().schema_descr();
    let roots = parquet.root_schema().get_fields();
    let hint = |(field, root): (&Arc<Field>, &Arc<parquet::schema::types::Type>)| {
        let is_old_timestamp = root.is_primitive() && root.get_physical_type() == Type::INT96;
        match field.data_type() {
            DataType::Utf8 => Field::clone(field).with_data_type(DataType::Utf8View),
            DataType::Timestamp(TimeUnit::Nanosecond, None) if is_old_timestamp => {
                Field::clone(field).with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None))
            }
            _ => Field::clone(field),
        }
    };
    let fields = inferred.schema().fields().iter().zip(roots).map(hint).collect::<Vec<_>>();
    let schema = Schema::new(fields).with_metadata(inferred.schema().metadata().clone());
    ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new().with_schema(Arc::new(schema)))
}

/// Id and SQL type of the table's column that each column of the file is.
type MatchedColumns = (Vec<Option<ColumnId>>, Vec<Option<SqlType>>);

/// Matches the table's columns with the file's by name.
fn match_columns(metadata: &ArrowReaderMetadata, columns: &[ColumnDef], object: &str) -> Result<MatchedColumns> {
    let schema = metadata.schema();
    let mut ids = vec![None; schema.fields().len()];
    let mut types = vec![None; schema.fields().len()];
    for column in columns {
        let missing = || Error::NoColumn { object: object.to_owned(), column: column.name.clone() };
        let position = conversion::find_column(schema, &column.name).ok_or_else(missing)?;
        let field = schema.field(position);
        if !conversion::is_convertible(field, &column.sql_type) {
            let found = conversion::suggest_sql_type(field);
            return Err(Error::ColumnType {
                object: object.to_owned(),
                column: column.name.clone(),
                found: found.map_or_else(|| field.data_type().to_string(), |found| found.to_string()),
                wanted: column.sql_type.to_string(),
            });
        }
        // Two columns of the table that differ only in case cannot be the same column of the file.
        if ids[position].replace(column.id).is_some() {
            return Err(missing());
        }
        types[position] = Some(column.sql_type.clone());
    }
    Ok((ids, types))
}

fn count_to_u64(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}
