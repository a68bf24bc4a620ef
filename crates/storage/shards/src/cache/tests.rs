use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array, StringViewArray,
};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use blocks::{BLOCK_ROWS, LikePattern, RowSet};
use futures::TryStreamExt;
use objects::{FolderDisk, Objects};
use proptest::prelude::*;
use roaring::RoaringBitmap;
use tempfile::TempDir;
use types::{Clock, ColumnId, DiskReserve, ShardId, SqlType, SystemClock, SystemRandom};
use uuid::Uuid;

use super::*;
use crate::reader::tests::{column, read_all, read_of};
use crate::writer::tests::{bucket, every_type};
use crate::{
    ColumnDef, CompareOp, Datum, ORDINAL_COLUMN, Predicate, RowGroupRead, ShardMeta, ShardReader, ShardWriter, Test,
    WriteOptions,
};

const PAGES: usize = 2;

pub(super) async fn shard(objects: &Objects, columns: &[ColumnDef], batch: &RecordBatch) -> Arc<ShardMeta> {
    let options = WriteOptions { page_rows: BLOCK_ROWS, row_group_pages: PAGES };
    let id = ShardId(Uuid::from_u128(7));
    let mut writer = ShardWriter::create(objects, id, "tables/1/7.parquet", columns, options).unwrap();
    writer.write(batch).await.unwrap();
    Arc::new(writer.finish().await.unwrap())
}

pub(super) async fn read_cached(
    reader: &ShardReader,
    cache: &Arc<BlockCache>,
    columns: &[ColumnDef],
    predicates: &[Predicate],
    deleted: Option<&Arc<RoaringBitmap>>,
) -> RecordBatch {
    let mut batches = Vec::new();
    for row_group in 0..reader.file().meta.row_groups.len() {
        let deleted = deleted.map(Arc::clone);
        let read = RowGroupRead { deleted, batch_rows: 3000, ..read_of(row_group, columns, predicates) };
        let rows = reader.read_cached(&read, &cache.for_table(Oid(1), CachePolicy::Normal)).unwrap();
        batches.extend(rows.batches.try_collect::<Vec<_>>().await.unwrap());
    }
    concat_batches(&ShardReader::schema(columns), &batches).unwrap()
}

/// Returns numbers and strings of several distributions over three pages and some rows, with NULLs among them.
pub(super) fn many_rows() -> (Vec<ColumnDef>, RecordBatch) {
    let rows = 3 * BLOCK_ROWS as i64 + 1234;
    let columns = vec![
        column(1, "n", SqlType::Int8),
        column(2, "name", SqlType::Text),
        column(3, "word", SqlType::Text),
        column(4, "x", SqlType::Float8),
        column(5, "late", SqlType::Int8),
    ];
    let n: Int64Array = (0..rows).map(|row| (row % 11 != 0).then_some(row * 7 % 100_003)).collect();
    let name: StringViewArray =
        (0..rows).map(|row| (row % 13 != 0).then(|| format!("a name of many {}", row * 31 % 50_021))).collect();
    let word: StringViewArray = (0..rows)
        .map(|row| (row % 17 != 0).then(|| ["a", "bc", "a longer word than that", ""][row as usize % 4]))
        .collect();
    let x: Float64Array = (0..rows).map(|row| (row % 5 != 0).then_some((row % 1000) as f64 / 4.0 - 20.0)).collect();
    let late: Int64Array = (0..rows).map(|row| (row > rows / 2).then_some(row)).collect();
    let arrays: Vec<ArrayRef> = vec![Arc::new(n), Arc::new(name), Arc::new(word), Arc::new(x), Arc::new(late)];
    (columns.clone(), RecordBatch::try_new(ShardReader::schema(&columns), arrays).unwrap())
}

#[tokio::test]
async fn every_type_comes_back_cold_and_hot() {
    let objects = bucket();
    let (columns, batch) = every_type();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let cache = Arc::new(BlockCache::new(64 << 20));
    for _ in 0..2 {
        assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch);
    }
    let usage = cache.memory_stats();
    assert_eq!(
        (usage.hits, usage.misses, usage.blocks),
        (columns.len() as u64, columns.len() as u64, columns.len() as u64)
    );
}

/// Rereading a local file is cheap, so a page is cached on its third read or while no scan reads; at once only if it
/// had to be packed anyway.
#[tokio::test]
async fn pages_of_near_shards_pass_through_at_first() {
    let (folder, cached) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let clock = Arc::new(SystemClock::new());
    let url = format!("file://{}", folder.path().display());
    let objects = Objects::open(&url, Arc::<SystemClock>::clone(&clock), Arc::new(SystemRandom)).unwrap();
    let (all_columns, all) = many_rows();
    let meta = shard(&objects, &all_columns, &all).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let pages = all.num_rows().div_ceil(BLOCK_ROWS) as u64;
    let n = [Predicate { column: ColumnId(1), test: Test::Compare(CompareOp::Greater, Datum::Int(50_000)) }];
    // Numbers, strings and words.
    let (columns, batch) = (&all_columns[..3], all.project(&[0, 1, 2]).unwrap());
    let blocks = pages * 3;

    let cache = Arc::new(BlockCache::new(64 << 20));
    let some = read_cached(&reader, &cache, columns, &n, None).await;
    assert_eq!(cache.memory_stats().blocks, 0);
    for kept in [0, blocks, blocks] {
        assert_eq!(read_cached(&reader, &cache, columns, &[], None).await, batch);
        assert_eq!(cache.memory_stats().blocks, kept);
    }
    assert_eq!(read_cached(&reader, &cache, columns, &n, None).await, some);
    let floats = &all_columns[3..4];
    assert_eq!(read_cached(&reader, &cache, floats, &[], None).await, all.project(&[3]).unwrap());
    assert_eq!(cache.memory_stats().blocks, blocks + pages);
    let pinned = Arc::new(BlockCache::new(64 << 20));
    let read = reader.read_cached(&read_of(0, columns, &[]), &pinned.for_table(Oid(1), CachePolicy::Pin)).unwrap();
    read.batches.try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(pinned.memory_stats().blocks, (columns.len() * PAGES) as u64);

    let reserve = DiskReserve { disk: Arc::new(FolderDisk::new(cached.path())), bytes: 0 };
    let disk = DiskTierSettings { folder: cached.path().to_owned(), bytes_max: 1 << 20, space_divisor: 1, reserve };
    let cache = Arc::new(BlockCache::with_disk(64 << 20, disk).unwrap());
    let reading = cache.for_table(Oid(1), CachePolicy::Normal).begin_read();
    for _ in 0..2 {
        assert_eq!(read_cached(&reader, &cache, columns, &[], None).await, batch);
    }
    assert_eq!(cache.memory_stats().blocks, 0, "somebody reads");
    drop(reading);
    for _ in 0..1000 {
        if cache.memory_stats().blocks == blocks {
            break;
        }
        clock.sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(cache.memory_stats().blocks, blocks);
    assert_eq!(read_cached(&reader, &cache, columns, &[], None).await, batch);
    assert_eq!((cache.memory_stats().hits, cache.memory_stats().misses), (blocks, 2 * blocks));

    // Pages that are unwanted by then are not cached.
    let reading = cache.for_table(Oid(2), CachePolicy::Normal).begin_read();
    assert_eq!(read_cached(&reader, &cache, &all_columns[4..], &[], None).await, all.project(&[4]).unwrap());
    let (shards, policies) = ([meta.id].into(), [(Oid(1), CachePolicy::Never)].into());
    cache.apply_retention(&Arc::new(RetentionPolicy { live_shards: shards, policies, ..RetentionPolicy::default() }));
    drop(reading);
    clock.sleep(std::time::Duration::from_millis(400)).await;
    assert_eq!(cache.memory_stats().blocks, 0);
}

#[tokio::test]
async fn rows_are_the_same_with_any_room() {
    let objects = bucket();
    let (columns, batch) = many_rows();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    for room in [0, 300_000, 64 << 20] {
        let cache = Arc::new(BlockCache::new(room));
        for _ in 0..3 {
            assert_eq!(read_cached(&reader, &cache, &columns, &[], None).await, batch);
            let some = [columns[2].clone(), columns[0].clone()];
            let read = read_cached(&reader, &cache, &some, &[], None).await;
            assert_eq!(read, batch.project(&[2, 0]).unwrap());
        }
        let usage = cache.memory_stats();
        assert!(usage.bytes <= room, "{usage:?}");
        assert_eq!(0 < usage.evictions, room == 300_000, "{usage:?}");
    }
}

#[tokio::test]
async fn deleted_rows_are_left_out_and_places_are_known() {
    let objects = bucket();
    let (mut columns, batch) = many_rows();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    columns.push(ColumnDef { nullable: false, ..column(ORDINAL_COLUMN.0, "place", SqlType::Int8) });
    let deleted: Arc<RoaringBitmap> =
        Arc::new((0..batch.num_rows() as u32).filter(|row| row % 3 == 0 || *row < 70_000).collect());
    let cache = Arc::new(BlockCache::new(64 << 20));
    for _ in 0..2 {
        let read = read_cached(&reader, &cache, &columns, &[], Some(&deleted)).await;
        let live: BooleanArray = (0..batch.num_rows() as u32).map(|row| Some(!deleted.contains(row))).collect();
        let expected = filter_record_batch(&batch, &live).unwrap();
        assert_eq!(read.project(&[0, 1, 2, 3, 4]).unwrap(), expected);
        let places: Vec<i64> = read.column(5).as_primitive::<Int64Type>().values().to_vec();
        assert!(
            places.into_iter().eq((0..batch.num_rows() as u32).filter(|row| !deleted.contains(*row)).map(i64::from))
        );
    }
}

/// Returns a strategy for tests on one of the columns of `many_rows`.
fn any_test() -> impl Strategy<Value = (ColumnId, Test)> {
    fn tests(
        datum: impl Strategy<Value = Datum> + Clone + 'static,
        patterns: &'static [&'static str],
    ) -> impl Strategy<Value = Test> {
        let op = prop::sample::select(vec![
            CompareOp::Eq,
            CompareOp::NotEq,
            CompareOp::Less,
            CompareOp::LessEq,
            CompareOp::Greater,
            CompareOp::GreaterEq,
        ]);
        let leaf = prop_oneof![
            (op, datum.clone()).prop_map(|(op, datum)| Test::Compare(op, datum)),
            prop::collection::vec(datum.clone(), 0..5).prop_map(Test::In),
            (datum.clone(), datum).prop_map(|(low, high)| Test::Between(low, high)),
            Just(Test::IsNull),
            Just(Test::IsNotNull),
        ]
        .boxed();
        let like = |pattern, is_negated| Test::Like { pattern: LikePattern::parse(pattern).unwrap(), is_negated };
        let leaf = match patterns {
            [] => leaf,
            _ => prop_oneof![4 => leaf, 2 => (prop::sample::select(patterns), any::<bool>())
                .prop_map(move |(pattern, is_negated)| like(pattern, is_negated))]
            .boxed(),
        };
        leaf.prop_recursive(2, 6, 3, |inner| {
            let some = prop::collection::vec(inner, 0..3);
            prop_oneof![some.clone().prop_map(Test::All), some.prop_map(Test::Any)]
        })
    }
    let number = (0_i64..100_100).prop_map(Datum::Int);
    let name = (0_u32..60_000).prop_map(|number| Datum::Text(format!("a name of many {number}")));
    let word = prop::sample::select(vec!["a", "bc", "a longer word than that", "", "b"])
        .prop_map(|word| Datum::Text(word.to_owned()));
    let x = (-90_i32..1000).prop_map(|x| Datum::Float(f64::from(x) / 4.0));
    prop_oneof![
        tests(number, &[]).prop_map(|test| (ColumnId(1), test)),
        tests(name, &["a name%", "%7", "%many%11%", "a%of%3%9", "%nowhere%", "b%"])
            .prop_map(|test| (ColumnId(2), test)),
        tests(word, &["%", "b%", "%c", "%longer%that", "a%d%t", "%x%"]).prop_map(|test| (ColumnId(3), test)),
        tests(x, &[]).prop_map(|test| (ColumnId(4), test)),
    ]
}

/// Returns whether a value passes a test, by the documentation of [`Test`].
fn passes(test: &Test, value: Option<&Datum>) -> bool {
    use std::cmp::Ordering as O;
    match (test, value) {
        (Test::All(tests), value) => tests.iter().all(|test| passes(test, value)),
        (Test::Any(tests), value) => tests.iter().any(|test| passes(test, value)),
        (Test::IsNull, value) => value.is_none(),
        (_, None) => false,
        (Test::IsNotNull, Some(_)) => true,
        (Test::In(data), Some(value)) => data.contains(value),
        (Test::Like { pattern, is_negated }, Some(Datum::Text(value))) => is_like(value, pattern) != *is_negated,
        (Test::Like { .. }, Some(_)) => unreachable!("strings alone are like anything"),
        (Test::Between(low, high), Some(value)) => low <= value && value <= high,
        (Test::Compare(op, datum), Some(value)) => {
            let order = value.compare(datum).unwrap();
            match op {
                CompareOp::Eq => order == O::Equal,
                CompareOp::NotEq => order != O::Equal,
                CompareOp::Less => order == O::Less,
                CompareOp::LessEq => order != O::Greater,
                CompareOp::Greater => order == O::Greater,
                CompareOp::GreaterEq => order != O::Less,
            }
        }
    }
}

/// Returns whether a string matches a pattern, by exhaustive search.
fn is_like(value: &str, pattern: &LikePattern) -> bool {
    fn tried(value: &[u8], pattern: &[u8]) -> bool {
        match pattern {
            [] => value.is_empty(),
            [b'%', rest @ ..] => (0..=value.len()).any(|at| tried(&value[at..], rest)),
            [first, rest @ ..] => value.first() == Some(first) && tried(&value[1..], rest),
        }
    }
    let mut text = pattern.prefix.clone();
    pattern.parts.iter().chain([&pattern.suffix]).for_each(|part| text.extend([b"%", part.as_slice()].concat()));
    tried(value.as_bytes(), &text)
}

#[test]
fn blocks_leave_the_rows_that_pass_and_no_others() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (columns, batch) = many_rows();
    let (reader, cache) = runtime.block_on(async {
        let objects = bucket();
        let meta = shard(&objects, &columns, &batch).await;
        (ShardReader::open(&objects, &meta).await.unwrap(), Arc::new(BlockCache::new(64 << 20)))
    });
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(40)
    });
    let some = prop::collection::vec(any_test(), 1..3);
    let outcome = runner.run(&some, |tests| {
        let predicates: Vec<Predicate> =
            tests.iter().map(|(column, test)| Predicate { column: *column, test: test.clone() }).collect();
        let read = runtime.block_on(read_cached(&reader, &cache, &columns, &predicates, None));
        let live: BooleanArray = (0..batch.num_rows())
            .map(|row| {
                let holds = |(column, test): &(ColumnId, Test)| {
                    let values = batch.column(usize::try_from(column.0).unwrap() - 1);
                    passes(test, Datum::from_array(values, row).as_ref())
                };
                Some(tests.iter().all(holds))
            })
            .collect();
        prop_assert_eq!(read, filter_record_batch(&batch, &live).unwrap());
        Ok(())
    });
    outcome.unwrap();
}

#[tokio::test]
async fn columns_that_the_shard_lacks_have_their_value() {
    let objects = bucket();
    let (mut columns, batch) = many_rows();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    columns.push(ColumnDef { missing: Some("9".to_owned()), ..column(9, "added", SqlType::Int4) });
    let cache = Arc::new(BlockCache::new(64 << 20));
    let predicate = Predicate { column: ColumnId(9), test: Test::Compare(CompareOp::Eq, Datum::Int(9)) };
    let read = read_cached(&reader, &cache, &columns, std::slice::from_ref(&predicate), None).await;
    let (expected, _) = read_all(&reader, &columns, &[]).await.unwrap();
    assert_eq!(read, expected);
}

#[tokio::test]
async fn a_table_that_wants_none_is_read_around_the_cache() {
    let objects = bucket();
    let (columns, batch) = many_rows();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let cache = Arc::new(BlockCache::new(64 << 20));
    let expected = read_cached(&reader, &cache, &columns, &[], None).await;
    let before = cache.memory_stats();
    let read = read_of(0, &columns, &[]);
    let rows = reader.read_cached(&read, &cache.for_table(Oid(1), CachePolicy::Never)).unwrap();
    let batches = rows.batches.try_collect::<Vec<_>>().await.unwrap();
    let read = concat_batches(&ShardReader::schema(&columns), &batches).unwrap();
    assert_eq!(read, expected.slice(0, read.num_rows()));
    assert_eq!(cache.memory_stats(), before);

    // Its blocks are dropped once its policy is never, and so are blocks of shards that no table references.
    let retention_policy = |shards: &[ShardId], policy| {
        let (shards, policies) = (shards.iter().copied().collect(), [(Oid(1), policy)].into());
        Arc::new(RetentionPolicy { live_shards: shards, policies, ..RetentionPolicy::default() })
    };
    cache.apply_retention(&retention_policy(&[meta.id], CachePolicy::Pin));
    assert_eq!(cache.memory_stats(), before);
    cache.apply_retention(&retention_policy(&[meta.id], CachePolicy::Never));
    assert_eq!((cache.memory_stats().blocks, cache.memory_stats().bytes, cache.memory_stats().evictions), (0, 0, 0));
    read_cached(&reader, &cache, &columns, &[], None).await;
    cache.apply_retention(&retention_policy(&[], CachePolicy::Normal));
    assert_eq!((cache.memory_stats().blocks, cache.memory_stats().bytes), (0, 0));
}

/// Byte strings and UUIDs compare by their bytes, in blocks as in values.
#[test]
fn bytes_are_compared_as_they_lie() {
    let rows = 3000_u32;
    let hash = |row: u32| row.wrapping_mul(0x9e37_79b9);
    let is_null = |row: u32| row.is_multiple_of(7);
    let id = |row: u32| u128::from(hash(row)) << 96 | u128::from(row % 3);
    let ids = (0..rows).map(|row| (!is_null(row)).then(|| id(row).to_be_bytes()));
    let ids: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids, 16).unwrap());
    let strings = (0..rows).map(|row| (!is_null(row)).then(|| hash(row).to_be_bytes()[..row as usize % 5].to_vec()));
    let strings: ArrayRef = Arc::new(strings.collect::<BinaryArray>());
    for values in [ids, strings] {
        let block = ColumnBlock::from_array(&values).unwrap();
        assert_eq!(&block.gather(&RowSet::all(rows as usize), values.data_type()).unwrap(), &values);
        let at = |row| Datum::from_array(&values, row);
        let (five, nine) = (at(5).unwrap(), at(9).unwrap());
        let (low, high) = if five < nine { (five, nine) } else { (nine, five) };
        let tests = [
            CompareOp::Eq,
            CompareOp::NotEq,
            CompareOp::Less,
            CompareOp::LessEq,
            CompareOp::Greater,
            CompareOp::GreaterEq,
        ]
        .map(|op| Test::Compare(op, at(5).unwrap()))
        .into_iter()
        .chain([
            Test::Between(low, high),
            Test::In(vec![at(3).unwrap(), at(2999).unwrap()]),
            Test::IsNull,
            Test::IsNotNull,
        ]);
        for test in tests {
            let mut found = RowSet::all(rows as usize);
            assert!(block.can_evaluate(&test) && block.filter(&test, &mut found).unwrap(), "{test:?}");
            let expected: Vec<usize> = (0..rows as usize).filter(|row| passes(&test, at(*row).as_ref())).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{test:?}");
        }
    }
}
