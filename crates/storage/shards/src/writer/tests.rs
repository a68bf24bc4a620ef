use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, Int64Builder, IntervalMonthDayNanoArray, ListBuilder,
    StringViewArray, StringViewBuilder, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{IntervalMonthDayNano, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use rowstore::sample_values::sample_column;
use types::sample_values::{all_types, samples};
use types::{ColumnId, SqlType, SystemClock, SystemRandom};
use uuid::Uuid;

use super::*;
use crate::checksums::{Checksums, page_checksum};
use crate::stored_types::{decode_stored, stored_field};
use crate::{ColumnStats, Datum, Error};

const OBJECT: &str = "tables/1/0.parquet";

pub(crate) fn bucket() -> Objects {
    Objects::open("memory:///", Arc::new(SystemClock::new()), Arc::new(SystemRandom)).unwrap()
}

pub(crate) fn column(id: i32, name: &str, sql_type: SqlType, nullable: bool) -> ColumnDef {
    ColumnDef { id: ColumnId(id), name: name.to_owned(), sql_type, nullable, missing: None }
}

pub(crate) fn schema(columns: &[ColumnDef]) -> SchemaRef {
    let fields: Vec<_> =
        columns.iter().map(|column| column.sql_type.arrow_field(&column.name, column.nullable)).collect();
    Arc::new(Schema::new(fields))
}

/// Writes a file of `batches`; returns its statistics and bytes.
pub(crate) async fn written(
    columns: &[ColumnDef],
    batches: &[RecordBatch],
    options: WriteOptions,
) -> (ShardMeta, Bytes) {
    let objects = bucket();
    let id = ShardId(Uuid::from_u128(1));
    let mut writer = ShardWriter::create(&objects, id, OBJECT, columns, options).unwrap();
    for batch in batches {
        writer.write(batch).await.unwrap();
    }
    let meta = writer.finish().await.unwrap();
    (meta, objects.get(OBJECT).await.unwrap())
}

pub(crate) fn metadata(file: &Bytes) -> ParquetMetaData {
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    reader.try_parse(file).unwrap();
    reader.finish().unwrap()
}

/// Reads all rows of a file in the form in which they were written.
pub(crate) fn read(columns: &[ColumnDef], file: &Bytes) -> RecordBatch {
    let stored = Arc::new(Schema::new(columns.iter().map(stored_field).collect::<Vec<_>>()));
    let options = ArrowReaderOptions::new().with_schema(stored);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(|batch| restore(columns, &batch.unwrap())).collect();
    concat_batches(&schema(columns), &batches).unwrap()
}

fn restore(columns: &[ColumnDef], batch: &RecordBatch) -> RecordBatch {
    let values =
        columns.iter().zip(batch.columns()).map(|(column, values)| decode_stored(values, &column.sql_type).unwrap());
    RecordBatch::try_new(schema(columns), values.collect()).unwrap()
}

/// Returns a column of every type with three rows, the second NULL.
pub(crate) fn every_type() -> (Vec<ColumnDef>, RecordBatch) {
    let numeric = |precision, scale| SqlType::Numeric { precision, scale };
    let decimals = |precision, scale: i8, value: i128| -> ArrayRef {
        let values = Decimal128Array::from(vec![Some(value), None, Some(-value)]);
        Arc::new(values.with_precision_and_scale(precision, scale).unwrap())
    };
    let text = || -> ArrayRef {
        Arc::new(StringViewArray::from(vec![Some("á"), None, Some("a text of more than 12 bytes")]))
    };
    let json = || -> ArrayRef { Arc::new(StringViewArray::from(vec![Some("{\"a\": 1}"), None, Some("[]")])) };
    let interval = |months, nanos| IntervalMonthDayNano::new(months, -2, nanos);
    let numbers = SqlType::Array(Box::new(SqlType::Int8));
    let mut number_lists = ListBuilder::new(Int64Builder::new()).with_field(SqlType::Int8.item_field());
    number_lists.append_value([Some(1), None]);
    number_lists.append_null();
    number_lists.append_value([]);
    let varchars = SqlType::Array(Box::new(SqlType::Varchar(Some(3))));
    let mut text_lists = ListBuilder::new(StringViewBuilder::new()).with_field(SqlType::Varchar(Some(3)).item_field());
    text_lists.append_value([Some("abc"), None]);
    text_lists.append_null();
    text_lists.append_value([Some("")]);
    let parts: Vec<(SqlType, ArrayRef)> = vec![
        (SqlType::Bool, Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        (SqlType::Int2, Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)]))),
        (SqlType::Int4, Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)]))),
        (SqlType::Int8, Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)]))),
        (numeric(1, 0), decimals(1, 0, 9)),
        (numeric(9, 2), decimals(9, 2, 999_999_999)),
        (numeric(18, 2), decimals(18, 2, 999_999_999_999_999_999)),
        (numeric(19, 0), decimals(19, 0, 9_999_999_999_999_999_999)),
        (SqlType::BARE_NUMERIC, decimals(38, 10, 10_i128.pow(38) - 1)),
        (SqlType::Float4, Arc::new(Float32Array::from(vec![Some(f32::NAN), None, Some(-0.0)]))),
        (SqlType::Float8, Arc::new(Float64Array::from(vec![Some(f64::INFINITY), None, Some(0.1)]))),
        (SqlType::Text, text()),
        (SqlType::Varchar(Some(40)), text()),
        (SqlType::Char(Some(40)), text()),
        (SqlType::Date, Arc::new(Date32Array::from(vec![Some(-719_162), None, Some(2_932_896)]))),
        (SqlType::Time, Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_400_000_000)]))),
        (SqlType::Timestamp, Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1)]))),
        (
            SqlType::TimestampTz,
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone("UTC")),
        ),
        (
            SqlType::Interval,
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                Some(interval(13, 5_000)),
                None,
                Some(interval(-1, -1_000)),
            ])),
        ),
        (SqlType::Bytea, Arc::new(BinaryArray::from(vec![Some(b"\0\xff".as_slice()), None, Some(b"")]))),
        (
            SqlType::Uuid,
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    [Some([1_u8; 16]), None, Some([0xff; 16])].into_iter(),
                    16,
                )
                .unwrap(),
            ),
        ),
        (SqlType::Json, json()),
        (SqlType::Jsonb, json()),
        (numbers, Arc::new(number_lists.finish())),
        (varchars, Arc::new(text_lists.finish())),
    ];
    let columns: Vec<_> =
        (1..).zip(&parts).map(|(id, (sql_type, _))| column(id, &format!("c.{id}"), sql_type.clone(), true)).collect();
    let values = parts.into_iter().map(|(_, values)| values).collect();
    let batch = RecordBatch::try_new(schema(&columns), values).unwrap();
    (columns, batch)
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_written() {
    let (columns, batch) = every_type();
    let (meta, file) = written(&columns, std::slice::from_ref(&batch), WriteOptions::default()).await;
    assert_eq!(read(&columns, &file), batch);
    assert_eq!((meta.rows, meta.bytes), (3, file.len() as u64));
    assert!(meta.columns.iter().all(|column| column.nulls == 1 && 0 < column.bytes));
    let root = metadata(&file).file_metadata().schema_descr().root_schema_ptr();
    let ids: Vec<_> = root.get_fields().iter().map(|field| field.get_basic_info().id()).collect();
    assert_eq!(ids, (1..=columns.len() as i32).collect::<Vec<_>>(), "fields are numbered as the columns");
}

/// Returns a column of all samples of every type, each with as many rows as the longest, and the batch.
pub(crate) fn all_samples_of_all_types() -> (Vec<ColumnDef>, RecordBatch) {
    let types = all_types();
    let most = types.iter().map(|sql_type| samples(sql_type).len()).max().unwrap();
    let columns: Vec<_> =
        (1..).zip(&types).map(|(id, sql_type)| column(id, &format!("c{id}"), sql_type.clone(), true)).collect();
    let values = types.iter().map(|sql_type| {
        let repeated: Vec<_> = samples(sql_type).into_iter().cycle().take(most).collect();
        sample_column(sql_type, &repeated)
    });
    let batch = RecordBatch::try_new(schema(&columns), values.collect()).unwrap();
    (columns, batch)
}

/// Conformance of shard files: schema, encodings, forms of values and statistics of every type.
#[tokio::test]
async fn all_samples_come_back_from_a_file() {
    let (columns, batch) = all_samples_of_all_types();
    let (meta, file) = written(&columns, std::slice::from_ref(&batch), WriteOptions::default()).await;
    let read = read(&columns, &file);
    for (position, column) in columns.iter().enumerate() {
        assert_eq!(read.column(position), batch.column(position), "{}", column.sql_type);
        let stats = &meta.columns[position];
        assert_eq!(stats.nulls, batch.column(position).null_count() as u64, "{}", column.sql_type);
        // Bounds enclose all values, or there are none.
        let (Some(min), Some(max)) = (&stats.min, &stats.max) else {
            assert_eq!(stats.min, stats.max, "{} has one bound", column.sql_type);
            continue;
        };
        for row in 0..batch.num_rows() {
            let Some(value) = Datum::from_array(batch.column(position).as_ref(), row) else { continue };
            assert!(*min <= value && value <= *max, "{}: {value:?} of {min:?} to {max:?}", column.sql_type);
        }
    }
}

/// Rows in which each value repeats are encoded with dictionaries.
#[tokio::test]
async fn repeated_samples_come_back_from_a_file() {
    let (columns, batch) = all_samples_of_all_types();
    let batches = vec![batch; 20];
    let (_, file) = written(&columns, &batches, WriteOptions { page_rows: 64, row_group_pages: 2 }).await;
    assert_eq!(read(&columns, &file), concat_batches(&schema(&columns), &batches).unwrap());
}

#[tokio::test]
async fn many_rows_of_every_type_come_back_too() {
    let (columns, batch) = every_type();
    let options = WriteOptions { page_rows: 64, row_group_pages: 2 };
    let batches = vec![batch; 100];
    let (meta, file) = written(&columns, &batches, options).await;
    assert_eq!(read(&columns, &file), concat_batches(&schema(&columns), &batches).unwrap());
    assert_eq!(meta.row_groups.iter().map(|group| group.rows).collect::<Vec<_>>(), [128, 128, 44]);
}

fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    let columns = [column(7, "n", SqlType::Int8, false), column(9, "t", SqlType::Text, true)];
    let text: StringViewArray = range.clone().map(|n| Some(["one", "two", "three"][(n % 3) as usize])).collect();
    RecordBatch::try_new(schema(&columns), vec![Arc::new(Int64Array::from_iter_values(range)), Arc::new(text)]).unwrap()
}

fn number_columns() -> [ColumnDef; 2] {
    [column(7, "n", SqlType::Int8, false), column(9, "t", SqlType::Text, true)]
}

#[tokio::test]
async fn pages_and_row_groups_are_cut_at_their_counts_whatever_the_batches() {
    let options = WriteOptions { page_rows: 100, row_group_pages: 3 };
    let batches: Vec<_> = (0..1_000).step_by(37).map(|start| numbers(start..1_000.min(start + 37))).collect();
    let (meta, file) = written(&number_columns(), &batches, options).await;
    assert_eq!(read(&number_columns(), &file), numbers(0..1_000));
    let rows: Vec<_> = meta.row_groups.iter().map(|group| group.rows).collect();
    assert_eq!(rows, [300, 300, 300, 100]);
    let metadata = metadata(&file);
    for (group, columns) in metadata.offset_index().unwrap().iter().enumerate() {
        for index in columns {
            let starts: Vec<_> = index.page_locations().iter().map(|page| page.first_row_index).collect();
            assert_eq!(starts, if group == 3 { vec![0] } else { vec![0, 100, 200] });
        }
    }
}

#[tokio::test]
async fn tail_and_pages_have_their_checksums() {
    let options = WriteOptions { page_rows: 100, row_group_pages: 3 };
    let (meta, file) = written(&number_columns(), &[numbers(0..1_000)], options).await;
    let tail_start = file.len() - meta.tail_bytes as usize;
    assert_eq!(xxh3_64(&file[tail_start..]), meta.tail_checksum);
    let metadata = metadata(&file);
    let checksums = Checksums::read(&metadata).unwrap();
    let mut pages_end = 0;
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        let mut group_bytes = 0;
        for (column, chunk) in row_group.columns().iter().enumerate() {
            let (start, length) = chunk.byte_range();
            let pages = metadata.offset_index().unwrap()[group][column].page_locations();
            let mut found = Vec::new();
            if chunk.dictionary_page_offset().is_some() {
                found.push(page_checksum(&file[start as usize..pages[0].offset as usize]));
            }
            found.extend(pages.iter().map(|page| {
                let start = page.offset as usize;
                page_checksum(&file[start..start + page.compressed_page_size as usize])
            }));
            assert_eq!(checksums.chunk(group, column), found);
            group_bytes += length;
            pages_end = pages_end.max(start + length);
        }
        assert_eq!(meta.row_groups[group].bytes, group_bytes);
    }
    assert_eq!(pages_end, tail_start as u64, "the tail is all that is behind the pages");
    let column_bytes: u64 = meta.columns.iter().map(|column| column.bytes).sum();
    assert_eq!(column_bytes, meta.row_groups.iter().map(|group| group.bytes).sum::<u64>());
}

#[tokio::test]
async fn statistics_describe_the_whole_file() {
    let options = WriteOptions { page_rows: 100, row_group_pages: 3 };
    let (meta, _) = written(&number_columns(), &[numbers(0..500), numbers(500..1_000)], options).await;
    let ColumnStats { column, nulls, min, max, strictly_ascending, heavy_hitters, distinct, .. } = &meta.columns[0];
    assert_eq!((*column, *nulls, *strictly_ascending), (ColumnId(7), 0, true));
    assert_eq!((min, max), (&Some(Datum::Int(0)), &Some(Datum::Int(999))));
    assert!(heavy_hitters.is_empty() && distinct.estimate().abs_diff(1_000) < 60);
    let text = &meta.columns[1];
    assert_eq!(text.distinct.estimate(), 3);
    assert_eq!(text.heavy_hitters.iter().map(|(_, count)| *count).sum::<u64>(), 1_000);
    assert_eq!(text.heavy_hitters[0], (Datum::Text("one".to_owned()), 334));
}

#[tokio::test]
async fn values_are_packed_by_what_they_are() {
    let columns = [
        column(1, "key", SqlType::Int8, false),
        column(2, "few", SqlType::Int8, false),
        column(3, "name", SqlType::Text, false),
        column(4, "comment", SqlType::Text, false),
    ];
    let rows = 0..2_000_i64;
    let values: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.clone())),
        Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row * 7 % 50))),
        Arc::new(rows.clone().map(|row| Some(format!("name {}", row % 10))).collect::<StringViewArray>()),
        Arc::new(rows.map(|row| Some(format!("a comment that nobody else made: {row}"))).collect::<StringViewArray>()),
    ];
    let batch = RecordBatch::try_new(schema(&columns), values).unwrap();
    let (_, file) = written(&columns, &[batch], WriteOptions::default()).await;
    let metadata = metadata(&file);
    let chunks = metadata.row_group(0).columns();
    let has = |chunk: usize, wanted: Encoding| chunks[chunk].encodings().any(|encoding| encoding == wanted);
    assert!(has(0, Encoding::DELTA_BINARY_PACKED) && !has(0, Encoding::RLE_DICTIONARY));
    assert!(has(1, Encoding::RLE_DICTIONARY) && !has(1, Encoding::DELTA_BINARY_PACKED));
    assert!(has(2, Encoding::RLE_DICTIONARY) && !has(3, Encoding::RLE_DICTIONARY));
    let codecs: Vec<_> = chunks.iter().map(|chunk| matches!(chunk.compression(), Compression::ZSTD(_))).collect();
    assert_eq!(codecs, [false, false, false, true]);
}

#[tokio::test]
async fn a_file_without_rows_is_a_file() {
    let (meta, file) = written(&number_columns(), &[], WriteOptions::default()).await;
    assert_eq!((meta.rows, meta.row_groups.len(), meta.columns.len()), (0, 0, 2));
    assert_eq!(metadata(&file).file_metadata().num_rows(), 0);
}

#[tokio::test]
async fn the_size_so_far_is_near_that_of_the_file() {
    let objects = bucket();
    let mut writer =
        ShardWriter::create(&objects, ShardId(Uuid::nil()), OBJECT, &number_columns(), WriteOptions::default())
            .unwrap();
    for rows in [10, 65_536, 200_000] {
        writer.write(&numbers(0..rows)).await.unwrap();
    }
    let expected = writer.bytes();
    let bytes = writer.finish().await.unwrap().bytes;
    assert!(bytes / 2 <= expected && expected <= bytes * 2, "{expected} expected, {bytes} written");
}

#[tokio::test]
async fn nothing_is_left_of_a_shard_that_was_given_up() {
    let objects = bucket();
    let create = || {
        ShardWriter::create(&objects, ShardId(Uuid::nil()), OBJECT, &number_columns(), WriteOptions::default()).unwrap()
    };
    let mut aborted = create();
    aborted.write(&numbers(0..200_000)).await.unwrap();
    assert_eq!(aborted.rows(), 200_000);
    aborted.abort().await.unwrap();
    let mut dropped = create();
    dropped.write(&numbers(0..10)).await.unwrap();
    drop(dropped);
    assert!(objects.list("").await.unwrap().is_empty());
}

#[tokio::test]
async fn columns_that_do_not_fit_are_refused() {
    let objects = bucket();
    let id = ShardId(Uuid::nil());
    let columns = &number_columns()[..1];
    let mut writer = ShardWriter::create(&objects, id, OBJECT, columns, WriteOptions::default()).unwrap();
    assert!(matches!(writer.write(&numbers(0..1)).await, Err(Error::Arrow(_))));
}
