use std::sync::Arc;
use std::time::Duration;

use types::{Clock, Condition, SystemClock};

use crate::Config;
use crate::fixtures::Warehouse;
use crate::sql_fixture::Sql;

/// What collects much: groups and tables, some of them of what operators below have made, with exchanges, sorts and windows.
const HUNGRY: [&str; 8] = [
    "select x, count(*) from a group by x order by x desc limit 3",
    "select x % 20000 as g, max(x::text), min(t) from a group by 1 order by 1 limit 3",
    "select count(*), sum(x), max(y), min(t) from a join b on x = y",
    "select count(*), sum(n) from (select x % 30000 as g, count(distinct t) as n from a group by 1) as s join b on g = y",
    "select n, count(*), sum(x) from (select x, row_number() over (partition by x % 5 order by t, x) as n from a) as s group by n order by n limit 3",
    "select count(*), sum(y) from (select x, t from a order by t, x limit 30000) as s join b on x = y",
    "select count(*), sum(y) from (select x from a order by x limit 30000) as s join b on x = y",
    "select count(*), sum(s.x) from (select x from a union all select y from b) as s join a as other on s.x = other.x",
];

async fn tables(memory_bytes: usize) -> Sql {
    let sql = Sql::on(Warehouse::with(Config { memory_bytes, ..Config::default() }));
    sql.run("create table a (x bigint, t text)").await.unwrap();
    sql.run("create table b (y bigint)").await.unwrap();
    for start in (0..50_000).step_by(10_000) {
        let series = format!("generate_series({start}, {})", start + 9_999);
        sql.run(&format!("insert into a select i, 'text ' || i % 777 from {series} as g(i)")).await.unwrap();
        sql.run(&format!("insert into b select i from {series} as g(i)")).await.unwrap();
    }
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_without_memory_leave_their_work_to_operators_and_nothing_behind() {
    let plenty = tables(1 << 30).await;
    let clock = SystemClock::new();
    let (mut left, mut refused) = (0, 0);
    let mut answers = Vec::new();
    for query in HUNGRY {
        answers.push(plenty.run(query).await.unwrap());
    }
    for kilobytes in [1_500, 3_000, 6_000, 12_000, 32_000] {
        let sql = tables(kilobytes << 10).await;
        let pool = Arc::clone(&sql.warehouse.execution.runtime().memory_pool);
        for (query, expected) in HUNGRY.iter().zip(&answers) {
            let answer = tokio::time::timeout(Duration::from_secs(60), sql.run(query)).await;
            match answer.unwrap_or_else(|_| panic!("{query} with {kilobytes} kB does not end")) {
                Ok(rows) => assert_eq!(rows, *expected, "{query} with {kilobytes} kB"),
                Err(error) => {
                    assert_eq!(error.condition, Condition::OutOfMemory, "{query} with {kilobytes} kB: {error}");
                    refused += 1;
                }
            }
            let ended = clock.monotonic();
            while (sql.warehouse.execution.threads.alive(), pool.reserved()) != (0, 0) {
                let waited = clock.monotonic() - ended;
                assert!(waited < Duration::from_secs(5), "{query} with {kilobytes} kB left {pool:?}");
                clock.sleep(Duration::from_millis(5)).await;
            }
            if let Ok(plan) = sql.run(&format!("explain (analyze) {query}")).await {
                left += usize::from(plan.iter().any(|line| line.contains("left to operators")));
            }
        }
    }
    assert!(4 < left, "{left} programs of queries that were answered had no memory, {refused} queries");
}
