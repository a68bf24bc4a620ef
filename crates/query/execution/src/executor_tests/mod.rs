//! Tests of running queries: results, cancellation, memory.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use binder::StatementPlan;
use futures::TryStreamExt;
use scheduler::ResourceConfig;
use types::{Clock, Condition, SystemClock};

use crate::fixtures::{Warehouse, context};
use crate::sql_fixture::Sql;

/// Queries that run for hours on the fastest machine, each busy in another operator: there are 10^15 combinations of
/// `a`, `b` and `c`, and the 10^10 pairs that some sort or store cannot be written within a second.
const ENDLESS: [&str; 9] = [
    "select count(*) from a, b, c where x + y + z <> 0",
    "select count(*) from a, b, c where x + y + z = -1",
    "select count(*) from a join b on x % 2 = y % 2 join c on y % 2 = z % 2 and x + y + z < 0",
    "select sum((select count(*) from b where x + y > 0)) from a",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n > 0) select count(*) from r",
    "select x, y from a, b order by (x * y) % 1000",
    "select (x * y + z) % 100000, count(*) from a, b, c group by 1",
    "select sum(n) from (select row_number() over (order by x * y) as n from a, b) as s",
    "with s as (select (x * y + z) % 100000 as g, count(*) as n from a, b, c group by 1) select count(*) from s as p join s as q on p.n = q.g",
];

/// Maximum time that a test waits for an event.
const HANGING: Duration = Duration::from_secs(60);

async fn tables() -> Sql {
    tables_on(Sql::new()).await
}

async fn tables_on(sql: Sql) -> Sql {
    for (table, column) in [("a", "x"), ("b", "y"), ("c", "z")] {
        sql.run(&format!("create table {table} ({column} bigint)")).await.unwrap();
        sql.run(&format!("insert into {table} select i from generate_series(1, 100000) as g(i)")).await.unwrap();
    }
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_query_answers() {
    let sql = tables().await;
    let clock = &SystemClock::new();
    for query in ENDLESS {
        for _ in 0..3 {
            let context = context();
            let cancel = context.cancel.clone();
            let cancelling = async move {
                clock.sleep(Duration::from_millis(200)).await;
                cancel.cancel();
                clock.sleep(HANGING).await;
            };
            let answer = tokio::select! {
                answer = sql.run_with(query, &context) => answer,
                () = cancelling => panic!("{query}: not ended {HANGING:?} after it was cancelled"),
            };
            assert_eq!(answer.unwrap_err().condition, Condition::QueryCanceled, "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_queries_leave_nothing_running_and_nothing_reserved() {
    let sql = tables().await;
    let pool = Arc::clone(&sql.warehouse.execution.executor().runtime().memory_pool);
    let clock = SystemClock::new();
    for query in ENDLESS {
        for _ in 0..3 {
            let context = context();
            let cancel = context.cancel.clone();
            let (answer, ()) = tokio::join!(sql.run_with(query, &context), async {
                clock.sleep(Duration::from_millis(100)).await;
                cancel.cancel();
            });
            assert!(answer.is_err());
        }
        let cancelled = clock.monotonic();
        let left = || (sql.warehouse.execution.executor().query_threads().unfinished_tasks(), pool.reserved());
        while left() != (0, 0) {
            let waited = clock.monotonic() - cancelled;
            assert!(waited < HANGING, "{query}: (tasks, bytes) {:?} are left", left());
            clock.sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_before_the_last_is_made() {
    let sql = tables().await;
    let StatementPlan::Query(query) = sql.plan("select x, y from a, b").unwrap() else {
        panic!("a query");
    };
    let mut rows = sql.warehouse.execution.executor().start_query(&query, &context()).await.unwrap().stream;
    let first = rows.try_next().await.unwrap().unwrap();
    assert!(0 < first.num_rows());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_several_read_are_kept_in_files_where_memory_is_short() {
    let query = "with s as (select x, y, 'text of ' || x as t from a join b on x = y where x > 10000) \
                 select count(*), sum(p.x), max(q.t) from s as p join s as q on p.x = q.y where (p.y + q.x) % 100 = 7";
    let plenty = tables().await;
    let expected = plenty.run(query).await.unwrap();
    let sql = tables_on(Sql::on(Warehouse::with_config(ResourceConfig {
        memory_bytes: 12 << 20,
        ..ResourceConfig::default()
    })))
    .await;
    assert_eq!(sql.run(query).await.unwrap(), expected);
    let plan = sql.run(&format!("explain (analyze, costs off) {query}")).await.unwrap().join("\n");
    assert!(plan.contains("Shared Scan on s") && plan.contains("Spilled Files: "), "{plan}");
    let runtime = sql.warehouse.execution.executor().runtime();
    let clock = SystemClock::new();
    let ended = clock.monotonic();
    while (runtime.memory_pool.reserved(), runtime.disk_manager.used_disk_space()) != (0, 0) {
        assert!(clock.monotonic() - ended < HANGING, "{:?} is left", runtime.memory_pool);
        clock.sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_early_leaves_the_others_their_rows() {
    let sql = tables().await;
    for query in [
        "with s as (select x % 1000 as g, count(*) as n from a group by 1) \
         select (select count(*) from (select 1 from s limit 1) as one) + (select count(*) from s as p join s as q on p.g = q.g)",
        "with s as (select x % 1000 as g, count(*) as n from a group by 1) \
         select count(*) + 1 from s as p join s as q on p.g = q.g where exists (select 1 from s where n > 3)",
    ] {
        assert_eq!(sql.run(query).await.unwrap(), ["1001"], "{query}");
    }
    // No reader takes any row.
    let none = "with s as (select x % 1000 as g, count(*) as n from a group by 1) select * from s as p join s as q on p.g = q.g limit 0";
    assert!(sql.run(none).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_end_a_query() {
    let sql = Sql::new();
    let error = sql.run("select 1 / (x - 5) from generate_series(1, 10) a(x)").await.unwrap_err();
    assert_eq!(error.condition, Condition::DivisionByZero);
}
