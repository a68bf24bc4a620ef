use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, DictionaryArray, Float64Array, Int8Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, TimestampMicrosecondType};
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use objects::{Objects, RequestLatency};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use types::{ColumnId, ShardId, SqlType, SystemClock, SystemRandom};
use uuid::Uuid;

use crate::reader::tests::{column, read_of};
use crate::writer::tests::bucket;
use crate::{
    BlockCache, ColumnDef, CompareOp, Datum, Error, ExternalFileLocation, Predicate, Result, RowGroupRead, ShardReader,
    Test, prune,
};

const ID: ShardId = ShardId(Uuid::from_u128(1));

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields = columns.iter().map(|(name, values)| Field::new(*name, values.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, values)| values).collect()).unwrap()
}

fn bytes(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("a.parquet")
    }

    fn put(&self, bytes: &[u8]) -> ExternalFileLocation {
        std::fs::write(self.path(), bytes).unwrap();
        ExternalFileLocation::from_path(self.path()).unwrap()
    }
}

async fn read(
    reader: &ShardReader,
    cache: &Arc<BlockCache>,
    columns: &[ColumnDef],
    predicates: &[Predicate],
) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    for row_group in 0..reader.meta().row_groups.len() {
        let read = RowGroupRead { batch_rows: 1000, ..read_of(row_group, columns, predicates) };
        batches.extend(
            reader
                .read_cached(&read, &cache.for_table(types::Oid(1), types::CachePolicy::Normal))?
                .batches
                .try_collect::<Vec<_>>()
                .await?,
        );
    }
    Ok(concat_batches(&ShardReader::schema(columns), &batches)?)
}

fn numbers_and_words(rows: i64) -> (Vec<ColumnDef>, RecordBatch) {
    let columns = vec![column(1, "n", SqlType::Int8), column(2, "word", SqlType::Text)];
    let n: Int64Array = (0..rows).map(|row| (row % 11 != 0).then_some(row)).collect();
    let word: StringArray = (0..rows).map(|row| (row % 7 != 0).then(|| format!("word {}", row % 100))).collect();
    (columns, batch(vec![("n", Arc::new(n)), ("word", Arc::new(word))]))
}

fn same_values(found: &RecordBatch, expected: &RecordBatch) {
    for (at, values) in found.columns().iter().enumerate() {
        let expected = arrow::compute::cast(expected.column(at), values.data_type()).unwrap();
        assert_eq!(values, &expected);
    }
}

#[tokio::test]
async fn files_of_any_layout_are_read_cold_and_hot() {
    let (columns, rows) = numbers_and_words(150_000);
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
    for group_rows in [7_001, 65_536, 100_000] {
        for (version, compression, dictionary, statistics) in [
            (WriterVersion::PARQUET_1_0, Compression::SNAPPY, true, EnabledStatistics::Page),
            (WriterVersion::PARQUET_2_0, zstd, false, EnabledStatistics::Chunk),
            (WriterVersion::PARQUET_1_0, Compression::GZIP(GzipLevel::default()), true, EnabledStatistics::Chunk),
            (WriterVersion::PARQUET_2_0, Compression::UNCOMPRESSED, true, EnabledStatistics::None),
        ] {
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(group_rows))
                .set_data_page_row_count_limit(3_000)
                .set_write_batch_size(500)
                .set_writer_version(version)
                .set_compression(compression)
                .set_dictionary_enabled(dictionary)
                .set_offset_index_disabled(statistics == EnabledStatistics::None)
                .set_statistics_enabled(statistics);
            let folder = Folder::new();
            let reader =
                ShardReader::open_external_file(folder.put(&bytes(&rows, properties)), ID, &columns).await.unwrap();
            assert_eq!(reader.meta().rows, 150_000);
            let cache = Arc::new(BlockCache::new(64 << 20));
            for _ in 0..2 {
                same_values(&read(&reader, &cache, &columns, &[]).await.unwrap(), &rows);
            }
            assert!(0 < cache.memory_stats().hits);
            let test = Test::Between(Datum::Int(70_000), Datum::Int(70_009));
            let some = read(&reader, &cache, &columns, &[Predicate { column: ColumnId(1), test }]).await.unwrap();
            let n = some.column(0).as_primitive::<Int64Type>();
            let kept = n.iter().flatten().filter(|n| (70_000..70_010).contains(n)).count();
            assert_eq!(kept, 9, "one is NULL");
        }
    }
}

#[tokio::test]
async fn statistics_prune_files_and_row_groups() {
    let (columns, rows) = numbers_and_words(10_000);
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1_000));
    let folder = Folder::new();
    let reader = ShardReader::open_external_file(folder.put(&bytes(&rows, properties)), ID, &columns).await.unwrap();
    let stats = reader.meta().column(ColumnId(1)).unwrap();
    assert_eq!((stats.min.clone(), stats.max.clone()), (Some(Datum::Int(1)), Some(Datum::Int(9_998))));
    assert_eq!((stats.nulls, stats.nulls_guessed), (910, false));
    let beyond = [Predicate { column: ColumnId(1), test: Test::Compare(CompareOp::Greater, Datum::Int(10_000)) }];
    assert!(!prune::may_match(reader.meta(), &beyond, &columns));
    let within = [Predicate { column: ColumnId(1), test: Test::Compare(CompareOp::Less, Datum::Int(500)) }];
    assert!(prune::may_match(reader.meta(), &within, &columns));
    let pruned = |row_group| reader.read(&read_of(row_group, &columns, &within)).unwrap().pruning.is_row_group_pruned;
    assert_eq!((0..10).map(pruned).filter(|is_pruned| *is_pruned).count(), 9);
}

#[tokio::test]
async fn what_footers_do_not_say_prunes_nothing() {
    let (columns, rows) = numbers_and_words(100);
    let properties = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    let folder = Folder::new();
    let reader = ShardReader::open_external_file(folder.put(&bytes(&rows, properties)), ID, &columns).await.unwrap();
    for test in [Test::IsNull, Test::IsNotNull, Test::Compare(CompareOp::Eq, Datum::Int(5))] {
        let predicates = [Predicate { column: ColumnId(1), test }];
        assert!(prune::may_match(reader.meta(), &predicates, &columns));
        assert!(!reader.read(&read_of(0, &columns, &predicates)).unwrap().pruning.is_row_group_pruned);
    }
}

#[tokio::test]
async fn types_of_others_become_ours() {
    let words: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
    let decimals = Decimal128Array::from(vec![Some(15), None, Some(-25)]).with_precision_and_scale(9, 1).unwrap();
    let rows = batch(vec![
        ("small", Arc::new(Int8Array::from(vec![Some(-1), None, Some(2)]))),
        ("big", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(1)]))),
        ("nanos", Arc::new(TimestampNanosecondArray::from(vec![Some(1_500), None, Some(2_000_000)]))),
        ("word", Arc::new(words)),
        ("price", Arc::new(decimals)),
        ("x", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(f64::NAN)]))),
    ]);
    let columns = [
        column(1, "small", SqlType::Int4),
        column(2, "big", SqlType::Numeric { precision: 20, scale: 0 }),
        column(3, "nanos", SqlType::Timestamp),
        column(4, "WORD", SqlType::Varchar(None)),
        column(5, "price", SqlType::Numeric { precision: 12, scale: 2 }),
        column(6, "x", SqlType::Float8),
    ];
    let folder = Folder::new();
    let file = bytes(&rows, WriterProperties::builder());
    let reader = ShardReader::open_external_file(folder.put(&file), ID, &columns).await.unwrap();
    let cache = Arc::new(BlockCache::new(64 << 20));
    let found = read(&reader, &cache, &columns, &[]).await.unwrap();
    let column_of = |at: usize| arrow::util::pretty::pretty_format_columns("v", &[Arc::clone(found.column(at))]);
    let shown: Vec<String> = (0..6).map(|at| column_of(at).unwrap().to_string()).collect();
    assert!(shown[1].contains("18446744073709551615") && shown[2].contains("1970-01-01T00:00:00.000001"), "{shown:?}");
    assert!(shown[3].contains("| a ") && shown[4].contains("-2.50"), "{shown:?}");
    assert!(found.columns().iter().all(|values| values.null_count() == 1));
    // Bounds are converted like values: one more digit of scale is a factor of ten.
    let price = Datum::Decimal(-250);
    assert_eq!(reader.meta().column(ColumnId(5)).unwrap().min, Some(price.clone()));
    let equal = [Predicate { column: ColumnId(5), test: Test::Compare(CompareOp::Eq, price) }];
    assert!(!reader.read(&read_of(0, &columns, &equal)).unwrap().pruning.is_row_group_pruned);
    // NaN is the greatest float and not included in the bounds.
    let greater = [Predicate { column: ColumnId(6), test: Test::Compare(CompareOp::Greater, Datum::Float(9.0)) }];
    assert!(!reader.read(&read_of(0, &columns, &greater)).unwrap().pruning.is_row_group_pruned);
}

#[tokio::test]
async fn columns_that_do_not_fit_are_told() {
    let nested = DataType::List(Arc::new(Field::new("item", DataType::Int32, true)));
    let rows = batch(vec![
        ("a", Arc::new(Int32Array::from(vec![Some(70_000), None]))),
        ("list", arrow::array::new_null_array(&nested, 2)),
    ]);
    let folder = Folder::new();
    let place = folder.put(&bytes(&rows, WriterProperties::builder()));
    let open = |columns: Vec<ColumnDef>| {
        let place = place.clone();
        async move { ShardReader::open_external_file(place, ID, &columns).await }
    };
    let missing = open(vec![column(1, "b", SqlType::Int4)]).await;
    assert!(matches!(missing, Err(Error::NoColumn { column, .. }) if column == "b"));
    let mistyped = open(vec![column(1, "a", SqlType::Date)]).await;
    assert!(matches!(mistyped, Err(Error::ColumnType { found, .. }) if found == "integer"));
    assert!(matches!(open(vec![column(1, "list", SqlType::Text)]).await, Err(Error::ColumnType { .. })));
    let twice = open(vec![column(1, "a", SqlType::Int4), column(2, "A", SqlType::Int4)]).await;
    assert!(matches!(twice, Err(Error::NoColumn { .. })));
    let cache = Arc::new(BlockCache::new(64 << 20));
    let narrow = [column(1, "a", SqlType::Int2)];
    let read_narrow = read(&open(narrow.to_vec()).await.unwrap(), &cache, &narrow, &[]).await;
    assert!(matches!(read_narrow, Err(Error::OutOfRange { .. })));
    let full = [ColumnDef { nullable: false, ..column(2, "a", SqlType::Int4) }];
    let read_full = read(&open(full.to_vec()).await.unwrap(), &cache, &full, &[]).await;
    assert!(matches!(read_full, Err(Error::Null { .. })));
}

/// Latency model of requests that take no time.
#[derive(Debug)]
struct AtOnce;

impl RequestLatency for AtOnce {
    fn wait(&self, _what: &'static str) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }
}

#[tokio::test]
async fn objects_are_read_by_requests_that_are_worth_their_way() {
    let (columns, rows) = numbers_and_words(1_000_000);
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    let bucket = bucket();
    bucket.put("a.parquet", bytes(&rows, properties).into()).await.unwrap();
    let (objects, counted) = bucket.with_faults(1, Arc::new(AtOnce), Arc::new(SystemClock::new()));
    let object = Arc::new(objects.head("a.parquet").await.unwrap());
    let reader =
        ShardReader::open_external_file(ExternalFileLocation::Object { objects, object }, ID, &columns).await.unwrap();
    let cache = Arc::new(BlockCache::new(64 << 20));
    for wanted in [&columns[..], &columns[..1], &columns[1..]] {
        let before = counted.request_count();
        let read = read_of(0, wanted, &[]);
        let table = cache.for_table(types::Oid(1), types::CachePolicy::Never);
        let batches: Vec<_> = reader.read_cached(&read, &table).unwrap().batches.try_collect().await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1_000_000);
        let (requests, fetched) = (counted.request_count() - before, read.fetched_bytes.load(Ordering::Relaxed));
        assert!(requests * (256 << 10) <= fetched, "{requests} requests for {fetched} bytes");
    }
}

#[tokio::test]
async fn a_file_that_changes_is_noticed() {
    let (columns, rows) = numbers_and_words(1_000);
    let folder = Folder::new();
    let file = bytes(&rows, WriterProperties::builder());
    let place = folder.put(&file);
    let reader = ShardReader::open_external_file(place.clone(), ID, &columns).await.unwrap();
    let off = Arc::new(BlockCache::new(0));
    assert!(read(&reader, &off, &columns, &[]).await.is_ok());
    std::fs::rename(folder.path(), folder.path().with_extension("old")).unwrap();
    assert!(matches!(read(&reader, &off, &columns, &[]).await, Err(Error::File { .. })));
    let now = folder.put(&file);
    assert!(!now.is_same(&place));
    assert!(matches!(read(&reader, &off, &columns, &[]).await, Err(Error::Changed { .. })));
    let objects = Objects::open("memory:///", Arc::new(SystemClock::new()), Arc::new(SystemRandom)).unwrap();
    objects.put("a.parquet", file.clone().into()).await.unwrap();
    let object = Arc::new(objects.head("a.parquet").await.unwrap());
    let place = ExternalFileLocation::Object { objects: objects.clone(), object };
    let reader = ShardReader::open_external_file(place, ID, &columns).await.unwrap();
    same_values(&read(&reader, &off, &columns, &[]).await.unwrap(), &rows);
    objects.put("a.parquet", file.into()).await.unwrap();
    let changed = read(&reader, &off, &columns, &[]).await;
    assert!(matches!(changed, Err(Error::Objects(objects::Error::Changed { .. }))), "{changed:?}");
}

#[tokio::test]
async fn a_file_is_settled_once_its_time_has_passed() {
    let folder = Folder::new();
    let place = folder.put(b"x");
    let file = std::fs::File::options().write(true).open(folder.path()).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(100)).unwrap();
    let place_then = ExternalFileLocation::from_path(folder.path()).unwrap();
    assert!(!place.is_same(&place_then));
    assert!(!place_then.is_change_detectable(101_000_000) && place_then.is_change_detectable(103_000_000));
}

/// A damaged file gives an error, or is read without the damaged part; it never panics.
#[tokio::test]
async fn no_damage_is_more_than_an_error() {
    let (columns, rows) = numbers_and_words(120);
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(70)).set_data_page_row_count_limit(20);
    let file = bytes(&rows, properties.set_write_batch_size(10));
    let folder = Folder::new();
    let mut refused = 0;
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= [0x01, 0x80, 0x08][at % 3];
        let place = folder.put(&damaged);
        let (columns, cache) = (columns.clone(), Arc::new(BlockCache::new(1 << 20)));
        let predicates = [Predicate { column: ColumnId(1), test: Test::Compare(CompareOp::Less, Datum::Int(100)) }];
        let done = tokio::spawn(async move {
            let reader = ShardReader::open_external_file(place, ID, &columns).await?;
            read(&reader, &cache, &columns, &predicates).await
        });
        let outcome = done.await.unwrap_or_else(|panic| panic!("byte {at} of {}: {panic}", file.len()));
        refused += usize::from(outcome.is_err());
    }
    assert!(0 < refused);
    for length in 0..file.len().min(200) {
        assert!(ShardReader::open_external_file(folder.put(&file[..length]), ID, &columns).await.is_err());
    }
}

/// INT96 holds nanoseconds of a day and the day, and reaches more years than nanoseconds since 1970.
#[tokio::test]
async fn timestamps_of_old_writers_are_read() {
    let schema = Arc::new(parse_message_type("message m { optional int96 t; }").unwrap());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut chunk = group.next_column().unwrap().unwrap();
    let moment = |day: u32, nanos: u32| {
        let mut value = Int96::new();
        value.set_data(nanos, 0, day);
        value
    };
    let values = [moment(2_440_588, 1_500), moment(2_440_588 + 376_200, 0)];
    chunk.typed::<Int96Type>().write_batch(&values, Some(&[1, 0, 1]), None).unwrap();
    chunk.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let columns = [column(1, "t", SqlType::Timestamp)];
    let folder = Folder::new();
    let reader = ShardReader::open_external_file(folder.put(&file), ID, &columns).await.unwrap();
    assert_eq!(reader.meta().column(ColumnId(1)).unwrap().max, None, "nobody agrees on their order");
    let found = read(&reader, &Arc::new(BlockCache::new(1 << 20)), &columns, &[]).await.unwrap();
    let expected = TimestampMicrosecondArray::from(vec![Some(1), None, Some(376_200 * 86_400_000_000)]);
    assert_eq!(found.column(0).as_primitive::<TimestampMicrosecondType>(), &expected);
}
