use std::sync::Arc;
use std::time::Duration;

use executor::RunContext;
use scheduler::MemoryUse;
use settings::Settings;
use types::{Clock, Condition, SystemClock};

use crate::fixtures::context;
use crate::sql_fixture::Sql;

/// Queries that need some megabytes, for a hash table, after a LIMIT, for groups or for a sort.
const MEMORY_INTENSIVE: [&str; 8] = [
    "select count(*), sum(s), max(n), min(t) from (select sum(x) over () as s, count(*) over () as n, t from a) as s",
    "select count(*), sum(s * x), max(m) from (select x, sum(x) over (partition by x % 2) as s, max(t) over (partition by x % 2) as m from a) as s",
    "select count(*), count(o.x), sum(s.x) from (select x from a union all select x + 100000 from a) as s right join a as o on s.x = o.x and o.t > 'text 3'",
    "select count(*), count(s.x), sum(o.x) from (select x from a union all select x + 100000 from a) as s full join (select x, t from a where x % 3 <> 0) as o on s.x = o.x and length(o.t) > 6",
    "select count(*), count(o.t) >= 0 from (select x from a limit 190000) as s left join (select * from a where x <= 150000) as o on s.x = o.x",
    "select count(*), sum(a.x), min(a.t) from a join a as o on a.x = o.x",
    "select count(*), sum(n), max(t) from (select x, t, count(*) as n from a group by x, t) as s",
    "select count(*), max(n) from (select x, row_number() over (order by t, x) as n from a) as s",
];

async fn tables() -> Sql {
    let sql = Sql::new();
    sql.run("create table a (x bigint, t text)").await.unwrap();
    sql.run("insert into a select i, 'text ' || i % 777 from generate_series(1, 200000) as g(i)").await.unwrap();
    sql
}

fn limited(limit: &str) -> RunContext {
    let mut settings = Settings::default();
    settings.set("kiln.query_memory", limit).unwrap();
    RunContext { settings: Arc::new(settings), ..context() }
}

/// Waits until neither the query nor anything else holds memory.
async fn wait_until_freed(sql: &Sql, context: &RunContext) {
    let (pool, clock) = (Arc::clone(&sql.warehouse.execution.executor().runtime().memory_pool), SystemClock::new());
    let ended = clock.monotonic();
    while (pool.reserved(), context.memory.used().current) != (0, 0) {
        assert!(clock.monotonic() - ended < Duration::from_secs(60), "{pool} and {:?} are left", context.memory.used());
        clock.sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_query_spills_beside_one_that_is_not() {
    let sql = tables().await;
    for query in MEMORY_INTENSIVE {
        let free = context();
        let expected = sql.run_with(query, &free).await.unwrap();
        let limit = format!("{}kB", free.memory.used().peak / 3 / 1024);
        let (other, narrow) = (context(), limited(&limit));
        let explain = format!("explain (analyze, costs off) {query}");
        let (same, told) = tokio::join!(sql.run_with(query, &other), sql.run_with(&explain, &narrow));
        let told = told.unwrap().join("\n");
        assert!(told.contains("Spilled"), "{query} with {limit}:\n{told}");
        let (all, few) = (other.memory.used(), narrow.memory.used());
        assert!(few.peak * 2 < all.peak, "{query}: {few:?}, {all:?}");
        assert!(told.contains(&format!("\nMemory: {}kB\n", few.peak.div_ceil(1024))), "{query}: {few:?}\n{told}");
        assert_eq!(same.unwrap(), expected, "{query}");
        wait_until_freed(&sql, &other).await;
        wait_until_freed(&sql, &narrow).await;
        assert_eq!(sql.run_with(query, &limited(&limit)).await.unwrap(), expected, "{query} with {limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_with_so_little_names_the_setting() {
    let sql = tables().await;
    let narrow = limited("64kB");
    // All rows of one key of an outer join have to be in memory together.
    let query =
        "select count(*) from a left join (select x % 1 as k, t from a) as o on a.x = o.k and length(o.t) = a.x";
    let error = sql.run_with(query, &narrow).await.unwrap_err();
    assert_eq!(error.condition, Condition::OutOfMemory, "{error}");
    assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("kiln.query_memory")), "{error:?}");
    wait_until_freed(&sql, &narrow).await;
    // The server's own memory is not limited by the session.
    assert_eq!(narrow.memory.used().limit, Some(64 << 10));
    assert_eq!(context().memory.used(), MemoryUse::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_query_gives_its_memory_back() {
    let sql = tables().await;
    let clock = SystemClock::new();
    for query in
        ["select x, t from a, a as o(y, u) order by x * y", "select count(*) from a, a as o(y, u) group by x * y"]
    {
        let running = limited("100MB");
        let cancel = running.cancel.clone();
        let memory = Arc::clone(&running.memory);
        let (answer, ()) = tokio::join!(sql.run_with(query, &running), async {
            while memory.used().current < 1 << 20 {
                clock.sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        });
        assert_eq!(answer.unwrap_err().condition, Condition::QueryCanceled, "{query}");
        wait_until_freed(&sql, &running).await;
    }
}
