use arrow::array::{AsArray, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use catalog::{Column, Distribution, Role, Schema as SqlSchema, Storage, Table, TableOrder};
use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};
use types::{CachePolicy, ColumnId, Oid, SqlType};

use super::*;

const ROWS: i64 = 3_000;

/// Returns batches of [`ROWS`] rows with a number, the distribution key, and a text.
fn batches(count: i64) -> Vec<RecordBatch> {
    let schema =
        Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true), Field::new("t", DataType::Utf8View, true)]));
    let batch = |number: i64| {
        let keys = Int64Array::from_iter_values(number * ROWS..(number + 1) * ROWS);
        let texts = keys.values().iter().map(|key| format!("the text of row {key}"));
        let texts = StringViewArray::from_iter_values(texts);
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(keys), Arc::new(texts)]).expect("they fit the schema")
    };
    (0..count).map(batch).collect()
}

/// Returns the bucketing by the number.
fn bucketing() -> BucketAssigner {
    let key = Column {
        id: ColumnId(1),
        name: "k".to_owned(),
        sql_type: SqlType::Int8,
        not_null: true,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    let table = Arc::new(Table {
        oid: Oid(20_000),
        schema: SqlSchema::PUBLIC,
        name: "t".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![key],
        constraints: Vec::new(),
        distribution: Distribution::On(vec![ColumnId(1)]),
        order: TableOrder::None,
        comment: None,
        next_column: 2,
        storage: Storage::Column,
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: CachePolicy::default(),
        external: None,
    });
    BucketAssigner::try_new(&table).expect("its values have hashes")
}

async fn through(batches: Vec<RecordBatch>, memory: &Arc<dyn MemoryPool>, bytes_max: usize) -> Vec<RecordBatch> {
    let schema = batches[0].schema();
    let input = Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches.into_iter().map(Ok))));
    let mut rounds = BucketGrouping::new(input, Arc::new(bucketing()), memory, bytes_max);
    let mut given = Vec::new();
    while let Some(batch) = rounds.next().await.expect("nothing fails") {
        given.push(batch);
    }
    given
}

/// Asserts that all rows are present, each batch has one bucket, and rows of a bucket are in order; returns the number
/// of rounds.
fn check(given: &[RecordBatch], count: i64) -> usize {
    let bucketing = bucketing();
    let (mut rounds, mut last, mut lasts) = (1, 0, [-1; BUCKET_COUNT]);
    let mut seen = vec![false; usize::try_from(count * ROWS).expect("a few")];
    for batch in given {
        let buckets = bucketing.assign_buckets(batch).expect("they are numbers");
        let bucket = buckets[0];
        assert!(buckets.iter().all(|other| *other == bucket));
        rounds += usize::from(bucket < last);
        last = bucket;
        let texts = batch.column(1).as_string_view();
        for (row, key) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
            assert_eq!(texts.value(row), format!("the text of row {key}"));
            assert!(lasts[usize::from(bucket)] < *key, "a bucket's rows are in order");
            lasts[usize::from(bucket)] = *key;
            seen[usize::try_from(*key).expect("it is one of them")] = true;
        }
    }
    assert!(seen.iter().all(|seen| *seen), "no row is lost");
    rounds
}

#[tokio::test]
async fn what_fits_memory_comes_bucket_by_bucket() {
    let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let given = through(batches(40), &memory, usize::MAX).await;
    assert_eq!(check(&given, 40), 1);
    assert_eq!(memory.reserved(), 0);
}

#[tokio::test]
async fn what_does_not_comes_in_rounds() {
    let all: usize = batches(1).iter().map(row_bytes).sum();
    let count = i64::try_from(3 * ROUND_BYTES_MIN / all).expect("a few");
    let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    assert!((3..=5).contains(&check(&through(batches(count), &memory, ROUND_BYTES_MIN).await, count)));
    // A pool without any memory.
    let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(0));
    assert!((3..=5).contains(&check(&through(batches(count), &memory, usize::MAX).await, count)));
    assert_eq!(memory.reserved(), 0);
}
