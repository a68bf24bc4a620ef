use arrow::array::{Array, AsArray, Float64Array, Int64Array, StringViewArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int64Type, IntervalMonthDayNanoType};
use bytes::Bytes;
use futures::TryStreamExt;
use types::{ShardId, SqlType};
use uuid::Uuid;

use super::*;
use crate::writer::tests::{bucket, every_type};
use crate::{CompareOp, Error, ShardWriter, Test, WriteOptions};

const OBJECT: &str = "tables/1/0.parquet";

pub(crate) fn column(id: i32, name: &str, sql_type: SqlType) -> ColumnDef {
    ColumnDef { id: ColumnId(id), name: name.to_owned(), sql_type, nullable: true, missing: None }
}

/// Writes a shard of these rows, with pages of 10 rows and row groups of 4 pages.
pub(crate) async fn shard(objects: &Objects, columns: &[ColumnDef], batch: &RecordBatch) -> Arc<ShardMeta> {
    let options = WriteOptions { page_rows: 10, row_group_pages: 4 };
    let mut writer = ShardWriter::create(objects, ShardId(Uuid::from_u128(1)), OBJECT, columns, options).unwrap();
    writer.write(batch).await.unwrap();
    Arc::new(writer.finish().await.unwrap())
}

pub(crate) fn read_of(row_group: usize, columns: &[ColumnDef], predicates: &[Predicate]) -> RowGroupRead {
    RowGroupRead {
        row_group,
        rows: 0..usize::MAX,
        columns: columns.into(),
        predicates: predicates.to_vec(),
        deleted: None,
        batch_rows: 7,
        fetched_bytes: Arc::default(),
        removed_rows: Arc::default(),
        predicate_order: Arc::default(),
    }
}

/// Reads all rows of the shard that `predicates` leave, and the pruning counts.
pub(crate) async fn read_all(
    reader: &ShardReader,
    columns: &[ColumnDef],
    predicates: &[Predicate],
) -> Result<(RecordBatch, Vec<Pruning>)> {
    let (mut batches, mut pruned) = (Vec::new(), Vec::new());
    for row_group in 0..reader.file().meta.row_groups.len() {
        let rows = reader.read(&read_of(row_group, columns, predicates))?;
        pruned.push(rows.pruning);
        batches.extend(rows.batches.try_collect::<Vec<_>>().await?);
    }
    Ok((concat_batches(&ShardReader::schema(columns), &batches)?, pruned))
}

fn numbers(values: impl IntoIterator<Item = Option<i64>>) -> (Vec<ColumnDef>, RecordBatch) {
    let columns = vec![column(1, "n", SqlType::Int8)];
    let values: Int64Array = values.into_iter().collect();
    let batch = RecordBatch::try_new(ShardReader::schema(&columns), vec![Arc::new(values)]).unwrap();
    (columns, batch)
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_written() {
    let objects = bucket();
    let (columns, batch) = every_type();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let (rows, _) = read_all(&reader, &columns, &[]).await.unwrap();
    assert_eq!(rows, batch);
    for column in &columns {
        let (rows, _) = read_all(&reader, std::slice::from_ref(column), &[]).await.unwrap();
        assert_eq!(rows.column(0), batch.column_by_name(&column.name).unwrap(), "{}", column.name);
    }
}

#[tokio::test]
async fn many_rows_come_in_order_and_in_small_batches() {
    let objects = bucket();
    let (columns, batch) = numbers((0..103).map(|n| (n % 7 != 0).then_some(n)));
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let read = read_of(0, &columns, &[]);
    let batches: Vec<RecordBatch> = reader.read(&read).unwrap().batches.try_collect().await.unwrap();
    assert!(batches.iter().all(|batch| 0 < batch.num_rows() && batch.num_rows() <= 7));
    assert!(0 < read.fetched_bytes.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(read_all(&reader, &columns, &[]).await.unwrap().0, batch);
}

#[tokio::test]
async fn a_part_of_a_row_group_is_its_rows() {
    let objects = bucket();
    let (columns, batch) = numbers((0..40).map(Some));
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let read = RowGroupRead { rows: 15..31, ..read_of(0, &columns, &[]) };
    let rows = reader.read(&read).unwrap();
    assert_eq!(rows.pruning.pages, 2, "those that begin there");
    let batches: Vec<RecordBatch> = rows.batches.try_collect().await.unwrap();
    let found: Vec<i64> =
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    assert_eq!(found, (15..31).collect::<Vec<i64>>());
}

#[tokio::test]
async fn columns_are_found_by_their_ids() {
    let objects = bucket();
    let written = vec![column(1, "a", SqlType::Int8), column(2, "b", SqlType::Text)];
    let schema = ShardReader::schema(&written);
    let numbers = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_new(schema, vec![numbers, Arc::new(StringViewArray::from(vec!["x", "y"]))]).unwrap();
    let meta = shard(&objects, &written, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    // One column is renamed, the order differs, and one column is read twice.
    let wanted = [column(2, "a", SqlType::Text), column(1, "z", SqlType::Int8), column(2, "c", SqlType::Text)];
    let (rows, _) = read_all(&reader, &wanted, &[]).await.unwrap();
    assert_eq!(rows.column(0), batch.column(1));
    assert_eq!(rows.column(1), batch.column(0));
    assert_eq!(rows.column(2), batch.column(1));
}

#[tokio::test]
async fn columns_that_a_shard_lacks_have_their_missing_value() {
    let objects = bucket();
    let (columns, batch) = numbers((0..25).map(Some));
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let with =
        |id, sql_type, missing: &str| ColumnDef { missing: Some(missing.to_owned()), ..column(id, "later", sql_type) };
    let wanted = [
        with(2, SqlType::Text, "a text of more than twelve bytes"),
        column(3, "null", SqlType::Jsonb),
        with(4, SqlType::Array(Box::new(SqlType::Int4)), "{1,NULL,3}"),
        with(5, SqlType::Numeric { precision: 5, scale: 2 }, "1.5"),
        with(6, SqlType::Interval, "1 mon"),
    ];
    let (rows, _) = read_all(&reader, &wanted, &[]).await.unwrap();
    assert_eq!(rows.num_rows(), 25);
    assert_eq!(rows.column(0).as_string_view().value(24), "a text of more than twelve bytes");
    assert_eq!(rows.column(1).null_count(), 25);
    assert_eq!(rows.column(2).as_list::<i32>().value(3).len(), 3);
    assert_eq!(rows.column(4).as_primitive::<IntervalMonthDayNanoType>().value(0).months, 1);
    assert!(read_all(&reader, &[with(7, SqlType::Int4, "x")], &[]).await.is_err());
    // Rows count even without any column.
    assert_eq!(read_all(&reader, &[], &[]).await.unwrap().0.num_rows(), 25);
}

#[tokio::test]
async fn pages_that_cannot_match_are_not_fetched() {
    let objects = bucket();
    let (columns, batch) = numbers((0..80).map(Some));
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let between = Test::Between(Datum::Int(25), Datum::Int(34));
    let (rows, pruned) =
        read_all(&reader, &columns, &[Predicate { column: ColumnId(1), test: between }]).await.unwrap();
    let found: Vec<i64> = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(found, (20..40).collect::<Vec<i64>>());
    assert_eq!(pruned[0], Pruning { pages: 4, pages_pruned: 2, is_row_group_pruned: false });
    assert_eq!(pruned[1], Pruning { pages: 4, pages_pruned: 4, is_row_group_pruned: true });
}

#[tokio::test]
async fn pages_with_nan_hold_what_is_greater_than_their_numbers() {
    let objects = bucket();
    let columns = [column(1, "x", SqlType::Float8)];
    let values = Float64Array::from(vec![1.0, f64::NAN, 2.0]);
    let batch = RecordBatch::try_new(ShardReader::schema(&columns), vec![Arc::new(values)]).unwrap();
    let meta = shard(&objects, &columns, &batch).await;
    let greater = [Predicate { column: ColumnId(1), test: Test::Compare(CompareOp::Greater, Datum::Float(5.0)) }];
    assert!(prune::may_match(&meta, &greater, &columns));
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    assert_eq!(read_all(&reader, &columns, &greater).await.unwrap().0.num_rows(), 3);
}

#[tokio::test]
async fn no_damage_goes_unnoticed() {
    let objects = bucket();
    let (columns, batch) = numbers((0..80).map(Some));
    let meta = shard(&objects, &columns, &batch).await;
    let whole = objects.get(OBJECT).await.unwrap();
    for at in 4..whole.len() {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 0x10;
        objects.put(OBJECT, Bytes::from(bytes)).await.unwrap();
        let read = async {
            let reader = ShardReader::open(&objects, &meta).await?;
            read_all(&reader, &columns, &[]).await
        };
        assert!(matches!(read.await, Err(Error::Damaged { .. })), "byte {at} of {}", whole.len());
    }
    objects.put(OBJECT, whole.slice(..whole.len() - 1)).await.unwrap();
    assert!(ShardReader::open(&objects, &meta).await.is_err());
}

#[test]
fn stretches_end_at_their_multiples() {
    let kept = [0..10, FETCH_ROWS_MIN - 1..FETCH_ROWS_MIN + 5, 9_000_000..9_000_001];
    let cut = row_group_stream::split_into_runs(&kept, FETCH_ROWS_MIN);
    let expected = [
        vec![0..10, FETCH_ROWS_MIN - 1..FETCH_ROWS_MIN],
        iter::once(FETCH_ROWS_MIN..FETCH_ROWS_MIN + 5).collect(),
        iter::once(9_000_000..9_000_001).collect(),
    ];
    assert_eq!(Vec::from(cut), expected);
}
