use std::collections::HashSet;

use catalog::TableRows;
use shards::RowIds;
use types::Oid;

use crate::sql_fixture::Sql;

const ROWS: u64 = 12_000;

async fn filled(sql: &Sql) -> Oid {
    sql.run("create table t (n bigint, s text)").await.unwrap();
    sql.run(&format!("insert into t select i, 'row ' || i from generate_series(1, {ROWS}) as g(i)")).await.unwrap();
    let state = sql.warehouse.transactions.current().state;
    state.tables().find(|table| table.name == "t").unwrap().oid
}

fn rows(sql: &Sql, table: Oid) -> TableRows {
    TableRows::clone(sql.warehouse.transactions.current().state.rows(table))
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changed_rows_go_to_shards_and_few_stay_fresh() {
    let sql = Sql::new();
    let table = filled(&sql).await;
    assert_eq!(sql.run("update t set s = 'changed'").await.unwrap(), [ROWS.to_string()]);
    let many = rows(&sql, table);
    assert!(many.fresh.is_empty() && many.len() == ROWS && many.shards.deleted_rows == ROWS);
    let added = many.shards.shards.iter().last().expect("there is one");
    assert_eq!((added.row_ids, added.rows), (RowIds::Stored, ROWS));

    assert_eq!(sql.run("update t set s = 'again' where n <= 10").await.unwrap(), ["10"]);
    let few = rows(&sql, table);
    assert_eq!((few.fresh.len(), few.len()), (10, ROWS));
    // The rows have retained the ids that they had in the shard.
    let ids: HashSet<u64> = few.fresh.active.rows().map(|(id, _)| id.0).collect();
    let RowIds::From(first) = few.shards.shards.get(0).expect("there is one").row_ids else {
        panic!("the first load gave ids")
    };
    assert!(ids.iter().all(|id| (first.0..first.0 + ROWS).contains(id)));

    assert_eq!(sql.run("update t set n = n + 1").await.unwrap(), [ROWS.to_string()]);
    assert!(rows(&sql, table).fresh.is_empty(), "fresh rows among them went along");
    let all = sql.run("select count(*), sum(n), count(distinct n) from t").await.unwrap();
    assert_eq!(all, [format!("{ROWS}|{}|{ROWS}", ROWS * (ROWS + 3) / 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_table_of_rows_stay_rows() {
    let sql = Sql::new();
    sql.run("create table t (n bigint) with (storage = row)").await.unwrap();
    sql.run(&format!("insert into t select i from generate_series(1, {ROWS}) as g(i)")).await.unwrap();
    sql.run("update t set n = n + 1").await.unwrap();
    let state = sql.warehouse.transactions.current().state;
    let table = state.tables().find(|table| table.name == "t").unwrap().oid;
    assert!(state.rows(table).shards.shards.is_empty() && state.rows(table).len() == ROWS);
}
