use types::Oid;

use crate::sql_fixture::Sql;

async fn filled() -> (Sql, Oid) {
    let sql = Sql::new();
    sql.run("create table t (n bigint, s text)").await.unwrap();
    sql.run("insert into t select i, 'row ' || i from generate_series(1, 1000) as g(i)").await.unwrap();
    let state = sql.warehouse.transactions.current().state;
    let table = state.tables().find(|table| table.name == "t").unwrap().oid;
    (sql, table)
}

const ALL: &str = "select count(*), count(distinct n), sum(n), min(s) from t";

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_the_same_before_and_after_they_settle() {
    let (sql, table) = filled().await;
    let before = sql.run(ALL).await.unwrap();
    assert_eq!(sql.warehouse.execution.maintenance().flush(table).await.unwrap(), 1_000);
    let state = sql.warehouse.transactions.current().state;
    assert!(state.rows(table).is_fully_flushed() && state.rows(table).shards.rows == 1_000);
    assert_eq!(sql.run(ALL).await.unwrap(), before);
    assert_eq!(sql.warehouse.execution.maintenance().flush(table).await.unwrap(), 0, "nothing is left to settle");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_settle_are_in_the_sample_and_few_more_leave_it_alone() {
    let (sql, table) = filled().await;
    let settled = async |rows: u64| {
        assert_eq!(sql.warehouse.execution.maintenance().flush(table).await.unwrap(), rows);
        let state = sql.warehouse.transactions.current().state;
        let sample = state.shards(table).sample.clone().expect("a table with shards has a sample");
        let batch = sample.batch().expect("it is a stream of rows");
        assert_eq!((batch.num_rows() as u64, batch.num_columns()), (sample.rows, 2));
        (sample.rows, sample.table_rows)
    };
    assert_eq!(settled(1_000).await, (1_000, 1_000));
    sql.run("insert into t values (0, 'one more')").await.unwrap();
    assert_eq!(settled(1).await, (1_000, 1_000), "a sample of nearly as many rows");
    sql.run("insert into t select i, 'later' from generate_series(1, 5000) as g(i)").await.unwrap();
    assert_eq!(settled(5_000).await, (4_096, 6_001));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_snapshot_goes_on_seeing_what_it_saw() {
    let (sql, table) = filled().await;
    let old = sql.warehouse.transactions.current();
    sql.warehouse.execution.maintenance().flush(table).await.unwrap();
    assert_eq!(old.state.rows(table).len(), 1_000);
    assert_eq!(old.state.rows(table).fresh.len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_shards_become_one_without_their_deleted_rows() {
    let (sql, table) = filled().await;
    for part in 1..10 {
        sql.warehouse.execution.maintenance().flush(table).await.unwrap();
        let (from, to) = (part * 1000 + 1, part * 1000 + 1000);
        let insert = format!("insert into t select i, 'row ' || i from generate_series({from}, {to}) as g(i)");
        sql.run(&insert).await.unwrap();
    }
    sql.warehouse.execution.maintenance().flush(table).await.unwrap();
    let before = sql.run(ALL).await.unwrap();
    assert_eq!(sql.warehouse.transactions.current().state.shards(table).shards.len(), 10);
    assert_eq!(sql.warehouse.execution.maintenance().compact(table).await.unwrap(), 10);
    let shards = sql.warehouse.transactions.current().state.shards(table).clone();
    assert_eq!((shards.shards.len(), shards.live_rows()), (1, 10_000));
    assert_eq!(sql.run(ALL).await.unwrap(), before);
}
