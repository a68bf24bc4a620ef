//! Tests of scans by their EXPLAIN ANALYZE output.

use crate::sql_fixture::Sql;

/// Creates `t (n bigint, f float8, s text)` with four shards of 100 rows; `n` ascends from shard to shard.
async fn table() -> Sql {
    let sql = Sql::new();
    sql.run("create table t (n bigint, f double precision, s text) with (storage = column)").await.unwrap();
    for shard in 0..4 {
        let (from, to) = (shard * 100, shard * 100 + 99);
        let insert = format!(
            "insert into t select i, case when i % 50 = 0 then 'NaN'::float8 else i / 10.0::float8 end, \
             case when i % 10 = 0 then null else 'text ' || i end from generate_series({from}, {to}) as g(i)"
        );
        sql.run(&insert).await.unwrap();
    }
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pruned_scan_answers_as_one_that_reads_all() {
    let sql = table().await;
    for filter in [
        "n = 150",
        "n in (1, 399, 1000)",
        "n < 100 or n > 390",
        "n between 95 and 105",
        "not (n >= 10)",
        "n is null",
        "f > 39::float8",
        "f = 'NaN'::float8",
        "s is null and n > 250",
        "s like 'text 3%'",
        "s >= 'text 39' or s is null",
        "n = 150 and s = 'no such'",
        "n = (select max(n) from t)",
        "exists (select from generate_series(390, 500) as g(i) where i = n)",
    ] {
        let pruned = sql.run(&format!("select n, f, s from t where {filter} order by n")).await.unwrap();
        // The same filter in a form that cannot be pruned by statistics.
        let all =
            format!("select n, f, s from (select n, f, s, ({filter}) as keep from t offset 0) where keep order by n");
        assert_eq!(pruned, sql.run(&all).await.unwrap(), "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_that_cannot_match_are_not_planned() {
    let sql = table().await;
    let plan = sql.run("explain select s from t where n = 150").await.unwrap().join("\n");
    assert!(plan.contains("Shards: 1 of 4"), "{plan}");
    let plan = sql.run("explain (analyze, costs off) select s from t where n = 150").await.unwrap().join("\n");
    assert!(plan.contains("Shards Pruned: 3") && plan.contains("Rows Removed by Filter: 99"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_and_top_k_prune_while_they_run() {
    let sql = table().await;
    sql.run("create table small (k bigint)").await.unwrap();
    sql.run("insert into small values (310), (320)").await.unwrap();
    let join = "select t.n from small join t on t.n = small.k";
    assert_eq!(sql.run(&format!("{join} order by 1")).await.unwrap(), ["310", "320"]);
    let plan = sql.run(&format!("explain (analyze) {join}")).await.unwrap().join("\n");
    assert!(plan.contains("Row Groups Pruned: 3"), "{plan}");
    assert_eq!(sql.run("select n from t order by n limit 3").await.unwrap(), ["0", "1", "2"]);
    assert_eq!(sql.run("select f from t order by f desc limit 2").await.unwrap(), ["NaN", "NaN"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_obeyed() {
    let sql = table().await;
    assert_eq!(sql.run("select n from t limit 150").await.unwrap().len(), 150);
    assert_eq!(sql.run("select from t limit 7").await.unwrap().len(), 7);
    assert_eq!(sql.run("select n from t limit 0").await.unwrap().len(), 0);
    assert_eq!(sql.run("select n from t offset 390").await.unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_can_run_again_and_again() {
    let sql = table().await;
    let query = "select a.n, (select count(*) from t b where b.n < a.n and b.n > a.n - 3) from t a where a.n in (1, 5, 399) \
                 order by 1";
    assert_eq!(sql.run(query).await.unwrap(), ["1|1", "5|2", "399|2"]);
    let twice = "select count(*) from t a join t b on a.n = b.n join t c on b.n = c.n";
    assert_eq!(sql.run(twice).await.unwrap(), ["400"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_needs_no_columns() {
    let sql = table().await;
    assert_eq!(sql.run("select count(*) from t").await.unwrap(), ["400"]);
    assert_eq!(sql.run("select count(*) from t where n > 150").await.unwrap(), ["249"]);
    assert_eq!(sql.run("select min(n), max(n), count(s) from t").await.unwrap(), ["0|399|360"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_added_later_have_their_default() {
    let sql = table().await;
    sql.run("alter table t add column c int default 7").await.unwrap();
    sql.run("insert into t values (1000, 1, 'x', 8)").await.unwrap();
    assert_eq!(sql.run("select c, count(*) from t group by c order by c").await.unwrap(), ["7|400", "8|1"]);
    assert_eq!(sql.run("select n from t where c = 8").await.unwrap(), ["1000"]);
    assert_eq!(sql.run("select count(*) from t where c = 7").await.unwrap(), ["400"]);
    assert_eq!(sql.run("select count(*) from t where c is null").await.unwrap(), ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_query_sees_what_has_changed_of_a_table_of_many_shards() {
    let sql = Sql::new();
    sql.run("create table t (n bigint, s text) with (storage = column)").await.expect("it runs");
    for shard in 0..70 {
        let insert = "insert into t select i, 'text ' || i from generate_series";
        sql.run(&format!("{insert}({}, {}) as g(i)", shard * 10, shard * 10 + 9)).await.expect("it runs");
    }
    let count =
        async |filter: &str| sql.run(&format!("select count(*), min(s) from t where {filter}")).await.expect("it runs");
    let plan = sql.run("explain select s from t where n between 5 and 14").await.expect("it runs").join("\n");
    assert!(plan.contains("Shards: 2 of 70"), "{plan}");
    for _ in 0..2 {
        assert_eq!(count("n between 5 and 14").await, ["10|text 10"]);
    }
    sql.run("delete from t where n in (5, 10)").await.expect("it runs");
    assert_eq!(count("n between 5 and 14").await, ["8|text 11"]);
    sql.run("insert into t select 7, 'more ' || i from generate_series(1, 3) as g(i)").await.expect("it runs");
    assert_eq!(count("n between 5 and 14").await, ["11|more 1"]);
    sql.run("alter table t add column k bigint default 3").await.expect("it runs");
    assert_eq!(count("k = 3").await, ["701|more 1"]);
    assert_eq!(count("k = 4").await, ["0|"]);
    sql.run("alter table t drop column k").await.expect("it runs");
    sql.run("alter table t add column k bigint default 4").await.expect("it runs");
    assert_eq!(count("k = 3").await, ["0|"]);
    assert_eq!(count("k = 4").await, ["701|more 1"]);
    sql.run("truncate t").await.expect("it runs");
    assert_eq!(count("n between 5 and 14").await, ["0|"]);
}
