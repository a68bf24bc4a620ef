use catalog::{SortColumn, TableOrder};
use shards::Datum;
use types::{ColumnId, Condition, SqlError};

use crate::fixtures::{TABLE, Warehouse, batch, context, table, values, write_plan};

#[tokio::test]
async fn rows_are_visible_once_committed_and_not_before() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let mut transaction = warehouse.begin();
    let plan = write_plan(&table, vec![vec![Ok(batch(0..10)), Ok(batch(10..12))]]);
    let rows = crate::fixtures::written_rows(
        warehouse.execution.dml().write(&plan, &mut transaction, &context()).await.unwrap(),
    );
    assert_eq!(rows, 12);
    assert!(warehouse.shards().is_empty(), "nothing is visible");
    assert_eq!(transaction.view().state.shards(TABLE).rows, 12, "but to the transaction");
    transaction.commit().await.unwrap();
    let shards = warehouse.shards();
    assert_eq!(shards.len(), 1);
    assert_eq!(shards[0].object, format!("tables/{TABLE}/{}.parquet", shards[0].id));
    assert!(shards[0].column(ColumnId(1)).unwrap().strictly_ascending);
    assert_eq!(values(&warehouse.rows(&table, &shards[0]).await), (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn few_rows_of_many_streams_share_a_shard_in_their_order() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let streams = (0..5).map(|part| vec![batch(10 * part..10 * part + 10)]).collect();
    assert_eq!(warehouse.load(&table, streams).await.unwrap(), 50);
    let shards = warehouse.shards();
    assert_eq!(shards.len(), 1);
    assert_eq!(values(&warehouse.rows(&table, &shards[0]).await), (0..50).collect::<Vec<_>>());
}

#[tokio::test]
async fn streams_with_many_rows_make_shards_of_their_own() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let streams = (0..2).map(|part| vec![batch(100_000 * part..100_000 * part + 100_000)]).collect();
    assert_eq!(warehouse.load(&table, streams).await.unwrap(), 200_000);
    let first: Vec<_> = warehouse.shards().iter().map(|shard| shard.column(ColumnId(1)).unwrap().min.clone()).collect();
    assert_eq!(first, [Some(Datum::Int(0)), Some(Datum::Int(100_000))]);
}

#[tokio::test]
async fn nothing_written_changes_nothing() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    assert_eq!(warehouse.load(&table, vec![vec![batch([])]]).await.unwrap(), 0);
    assert!(warehouse.shards().is_empty());
    assert!(warehouse.objects.list("").await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_stays_of_a_load_that_fails() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let mut transaction = warehouse.begin();
    let bad_row = SqlError::new(Condition::CheckViolation, "a bad row");
    let plan = write_plan(&table, vec![vec![Ok(batch(0..100_000)), Err(bad_row.clone())], vec![Ok(batch(0..100_000))]]);
    let failed = warehouse.execution.dml().write(&plan, &mut transaction, &context()).await;
    assert_eq!(failed, Err(bad_row));
    assert!(!transaction.is_dirty());
    transaction.rollback();
    // The tasks of the other streams end eventually; what they wrote is cleaned up afterwards.
    for _ in 0..500 {
        warehouse.transactions.clean_once().await.unwrap();
        if warehouse.objects.list("").await.unwrap().is_empty() {
            return;
        }
        types::Clock::sleep(&types::SystemClock::new(), std::time::Duration::from_millis(10)).await;
    }
    panic!("objects of a failed load stay");
}

#[tokio::test]
async fn a_cancelled_load_ends() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let context = context();
    context.cancel.cancel();
    let mut transaction = warehouse.begin();
    let plan = write_plan(&table, vec![vec![Ok(batch(0..10))]]);
    let failed = warehouse.execution.dml().write(&plan, &mut transaction, &context).await;
    assert_eq!(failed.unwrap_err().condition, Condition::QueryCanceled);
}

#[tokio::test]
async fn shards_are_sorted_by_the_tables_key() {
    let warehouse = Warehouse::new();
    let key = SortColumn { column: ColumnId(1), descending: false, nulls_first: false };
    let table = table(TableOrder::Sort(vec![key]));
    warehouse.create(&table).await;
    let shuffled = |from: i32| batch((0..50_000).map(move |row| (row * 7_919 + from) % 100_000));
    warehouse.load(&table, vec![vec![shuffled(0)], vec![shuffled(1)]]).await.unwrap();
    let shards = warehouse.shards();
    assert_eq!(shards.len(), 1);
    assert!(shards[0].column(ColumnId(1)).unwrap().ascending);
    let rows = values(&warehouse.rows(&table, &shards[0]).await);
    assert!(rows.len() == 100_000 && rows.is_sorted());
}

#[tokio::test]
async fn clustered_rows_lie_close_to_each_other_in_every_column() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::Cluster(vec![ColumnId(1), ColumnId(2)]));
    warehouse.create(&table).await;
    let all: Vec<i32> = (0..40_000).map(|row| row * 7_919 % 40_000).collect();
    warehouse.load(&table, vec![vec![batch(all.clone())]]).await.unwrap();
    let shard = &warehouse.shards()[0];
    let rows = warehouse.rows(&table, shard).await;
    let mut found = values(&rows);
    let spread = |values: &[i32]| i64::from(*values.iter().max().unwrap()) - i64::from(*values.iter().min().unwrap());
    let texts = rows.column(1).as_any().downcast_ref::<arrow::array::StringViewArray>().unwrap();
    let first_digits = |from: usize| {
        (from..from + 1_000).map(|row| texts.value(row).as_bytes()[0]).collect::<std::collections::BTreeSet<_>>()
    };
    let parts = found.len() / 1_000;
    let narrow = (0..parts).filter(|part| spread(&found[part * 1_000..][..1_000]) < 20_000).count();
    let few_digits = (0..parts).filter(|part| first_digits(part * 1_000).len() < 5).count();
    assert!(parts * 3 / 4 < narrow && parts * 3 / 4 < few_digits, "{narrow} and {few_digits} of {parts} parts");
    found.sort_unstable();
    assert_eq!(found, (0..40_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_null_where_none_may_be_is_refused() {
    use std::sync::Arc;

    use arrow::array::{Int32Array, RecordBatch, StringViewArray};
    use arrow::datatypes::Schema;
    use types::SqlType;

    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let schema = Schema::new(vec![SqlType::Int4.arrow_field("a", true), SqlType::Text.arrow_field("b", true)]);
    let columns: Vec<arrow::array::ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![None])), Arc::new(StringViewArray::from(vec!["x"]))];
    let nulls = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let failed = warehouse.load(&table, vec![vec![nulls]]).await.unwrap_err();
    assert_eq!(failed.condition, Condition::NotNullViolation);
    assert_eq!(failed.message, "null value in column \"a\" of relation \"t\" violates not-null constraint");
}

#[tokio::test]
async fn the_sample_grows_with_the_table() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let sample = || warehouse.transactions.current().state.shards(TABLE).sample.clone().unwrap();
    warehouse.load(&table, vec![vec![batch(0..1_000)]]).await.unwrap();
    assert_eq!((sample().rows, sample().table_rows), (1_000, 1_000));
    warehouse.load(&table, vec![vec![batch(0..1)]]).await.unwrap();
    assert_eq!(sample().table_rows, 1_000, "one row more changes little");
    warehouse.load(&table, vec![vec![batch(0..9_000)]]).await.unwrap();
    assert_eq!((sample().rows, sample().table_rows), (4_096, 10_001));
    let read = arrow::ipc::reader::StreamReader::try_new(std::io::Cursor::new(sample().ipc.clone()), None).unwrap();
    let rows: usize = read.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 4_096);
}
