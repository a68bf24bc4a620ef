//! Contents of workers' caches when a cluster grows or shrinks, after a load, and when the owner of pages is busy.

use std::time::Duration;

use bench::{Suite, query_benchmark, table_load};
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::cluster::wait_until;
use crate::server::Server;

const SCALE: f64 = 0.3;
/// Rounds until pages are hot: they are cached when read for the third time, and hot when read again.
const ROUNDS: usize = 5;
const TWO: &str = "CREATE CLUSTER c WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
const READY: &str = "SELECT count(*) = $ FROM sys.worker WHERE cluster = 'c' AND state = 'ready'";
const USES: &str = "SELECT coalesce(sum(cache_hits), 0)::int8, coalesce(sum(cache_misses), 0)::int8 \
                    FROM sys.worker WHERE cluster = 'c' AND state = 'ready'";
const DIVIDED: &str = "USE CLUSTER c; SET min_parallel_table_scan_size = 0; SET kiln.fragment_cache = off";
/// Rows per page of a table's column.
const PAGE_ROWS: i64 = 65_536;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hot_changes_hands_when_a_cluster_grows_and_when_it_shrinks() {
    let server = Server::start();
    let boss = server.connect().await;
    table_load::load(&boss, Suite::Tpch, SCALE, &SystemClock::new(), |_| {}).await.expect("the data loads");
    let client = two_workers(&server, &boss).await;
    for _ in 0..ROUNDS {
        all_queries(&client).await;
    }
    let (before, _) = run_round(&boss, &client).await;

    boss.batch_execute("ALTER CLUSTER c SET (NODE_COUNT = 3)").await.expect("it grows");
    wait_until(&boss, &READY.replace('$', "3")).await;
    // The third worker owns nothing before its cache is warm.
    let third = "SELECT cache_bytes > 0 FROM sys.worker WHERE cluster = 'c' AND slot = 2 AND state = 'ready'";
    wait_until(&boss, third).await;
    let (grown, places) = run_round(&boss, &client).await;
    println!("{:.0} % of blocks were found in memory with two, {:.0} % with three", before * 100.0, grown * 100.0);
    assert_eq!(places, "Runs: on 3 workers", "the third has a part of the work");
    assert!(0.8 < grown, "{grown} of the blocks that were asked for were there, {before} before");

    // Pages that the third worker has read itself are hot only there.
    for _ in 0..ROUNDS {
        all_queries(&client).await;
    }
    boss.batch_execute("ALTER CLUSTER c SET (NODE_COUNT = 2)").await.expect("it shrinks");
    wait_until(&boss, "SELECT state = 'running' FROM sys.cluster WHERE name = 'c'").await;
    let (shrunk, places) = run_round(&boss, &client).await;
    println!("{:.0} % with two again", shrunk * 100.0);
    assert_eq!(places, "Runs: on 2 workers");
    assert!(0.8 < shrunk, "{shrunk} of the blocks that were asked for were there, {grown} before");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loaded_is_in_the_caches_of_its_owners_before_a_query_asks() {
    const LOADED: i64 = 3_000_000;
    let server = Server::start();
    let boss = server.connect().await;
    let rows =
        |from: i64, to: i64| format!("SELECT i, i % 1000 AS v, i % 7 AS w FROM generate_series({from}, {to}) AS g(i)");
    boss.batch_execute(&format!("CREATE TABLE t AS {}", rows(1, 1_000_000))).await.expect("it is loaded");
    let client = two_workers(&server, &boss).await;
    for _ in 0..ROUNDS {
        assert_eq!(sum(&client, "v", "t").await, 499_500_000);
    }
    // One of three columns is hot.
    let insert = format!("INSERT INTO t {}", rows(1_000_001, 1_000_000 + LOADED));
    boss.batch_execute(&insert).await.expect("it is loaded");
    let pages = LOADED / PAGE_ROWS;
    let has_read = |pages: i64| {
        format!(
            "SELECT sum(ahead_blocks) >= {pages} AND min(ahead_blocks) > 0 AND min(ahead_shards) > 0 AND sum(ahead_dropped) = 0 \
             FROM sys.worker WHERE cluster = 'c'"
        )
    };
    wait_until(&boss, &has_read(pages)).await;
    let (hits, misses) = cache_uses(&boss).await;
    assert_eq!(sum(&client, "v", "t").await, 4 * 499_500_000);
    let found = hit_rate_since(&boss, hits, misses).await;
    let of_t = prefetched_blocks(&boss).await;
    println!("{:.0} % of the blocks of a column that was hot were found after a load", found * 100.0);
    assert!(share_of_owners(&of_t) - 0.15 < found, "{found} of the blocks were there before anybody asked: {of_t:?}");
    let read: i64 = of_t.iter().sum();
    assert!(
        read < pages * 3 / 2,
        "each is at its owner's, and the columns that nobody asks for are nowhere: {read} of {pages}"
    );

    // A pinned table is cached entirely, though no query has read it.
    let pinned = format!("CREATE TABLE p WITH (cache = pin) AS {}", rows(1, LOADED));
    boss.batch_execute(&pinned).await.expect("it is loaded");
    wait_until(&boss, &has_read(read + 3 * pages)).await;
    let (hits, misses) = cache_uses(&boss).await;
    assert_eq!(sum(&client, "w", "p").await, LOADED / 7 * 21 + 1 + 2 + 3);
    let found = hit_rate_since(&boss, hits, misses).await;
    println!("{:.0} % of the blocks of a pinned table were found after it was made", found * 100.0);
    let of_p: Vec<i64> = prefetched_blocks(&boss).await.iter().zip(&of_t).map(|(all, of_t)| all - of_t).collect();
    assert!(share_of_owners(&of_p) - 0.15 < found, "{found} of the blocks were there before anybody asked: {of_p:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_second_stands_in_for_an_owner_that_has_enough() {
    const SMALL: &str = "CREATE TABLE small AS SELECT i FROM generate_series(1, 200000) AS g(i)";
    let server = Server::start();
    let boss = server.connect().await;
    boss.batch_execute(SMALL).await.expect("it is loaded");
    let client = two_workers(&server, &boss).await;
    client.batch_execute("RESET min_parallel_table_scan_size").await.expect("it is set");
    let whole = "SELECT sum(i) FROM small";
    let owner = execution_place(&client, whole).await;
    assert!(owner.starts_with("Runs: as a whole on "), "{owner}");
    assert_eq!(execution_place(&client, whole).await, owner, "the owner has time");

    let cores = "SELECT ceil(min(cores))::int8 FROM sys.worker WHERE cluster = 'c'";
    let cores: i64 = boss.query_one(cores, &[]).await.expect("workers are shown").get(0);
    let mut busy = Vec::new();
    for _ in 0..2 * cores {
        let other = server.connect().await;
        let open = "USE CLUSTER c; BEGIN; DECLARE c CURSOR FOR SELECT a.i FROM small a, small b; FETCH 1 FROM c";
        other.batch_execute(open).await.expect("the first row comes at once, and the last never");
        busy.push(other);
    }
    let second = execution_place(&client, whole).await;
    assert!(second.starts_with("Runs: as a whole on ") && second != owner, "{second}, {owner}");
    for other in &busy {
        other.batch_execute("ROLLBACK").await.expect("its cursor is closed");
    }
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    while execution_place(&client, whole).await != owner {
        assert!(clock.monotonic() - begun < Duration::from_secs(300), "the owner has nothing to do any more");
    }
}

/// Creates a cluster of two workers, and a session whose queries always run on both.
async fn two_workers(server: &Server, boss: &Client) -> Client {
    boss.batch_execute(TWO).await.expect("a cluster can be made");
    wait_until(boss, &READY.replace('$', "2")).await;
    let client = server.connect().await;
    client.batch_execute(DIVIDED).await.expect("the cluster is there");
    client
}

/// Runs all queries again; returns the hit rate of their blocks, and where the first query ran.
async fn run_round(boss: &Client, client: &Client) -> (f64, String) {
    let (hits, misses) = cache_uses(boss).await;
    let place = execution_place(client, Suite::Tpch.queries()[0]).await;
    all_queries(client).await;
    (hit_rate_since(boss, hits, misses).await, place)
}

/// Returns the line of EXPLAIN that says where a query runs.
async fn execution_place(client: &Client, sql: &str) -> String {
    let plan = query_benchmark::run_query(client, &format!("EXPLAIN (ANALYZE) {sql}")).await.expect("it is explained");
    let line = plan.into_iter().flatten().flatten().find(|line| line.starts_with("Runs: "));
    line.expect("a cluster of processes says where")
}

async fn all_queries(client: &Client) {
    for sql in Suite::Tpch.queries().iter().filter(|sql| !sql.contains("CREATE")) {
        query_benchmark::run_query(client, sql).await.expect("each query has an answer");
    }
}

async fn sum(client: &Client, column: &str, table: &str) -> i64 {
    let sql = format!("SELECT sum({column})::int8 FROM {table}");
    client.query_one(&sql, &[]).await.expect("it is a number").get(0)
}

/// Returns the number of blocks that each worker has prefetched, by slot.
async fn prefetched_blocks(boss: &Client) -> Vec<i64> {
    let rows =
        boss.query("SELECT ahead_blocks FROM sys.worker WHERE cluster = 'c' AND slot < 2 ORDER BY slot", &[]).await;
    rows.expect("workers are shown").iter().map(|row| row.get(0)).collect()
}

/// Returns the smallest expected share of a table's blocks read by their owners: with few pieces a worker may own
/// more than half, and the second owner reads the excess.
fn share_of_owners(owned: &[i64]) -> f64 {
    let all: i64 = owned.iter().sum();
    let half = (all + 1) / 2;
    owned.iter().map(|owned| half.min(*owned)).sum::<i64>() as f64 / all as f64
}

/// Returns the hit rate of block reads since the given counts.
async fn hit_rate_since(boss: &Client, hits: i64, misses: i64) -> f64 {
    let clock = SystemClock::new();
    loop {
        let now = cache_uses(boss).await;
        let (hits, misses) = (now.0 - hits, now.1 - misses);
        if 0 < hits + misses {
            return hits as f64 / (hits + misses) as f64;
        }
        assert!(clock.monotonic() < Duration::from_secs(120), "somebody has asked for some");
    }
}

/// Returns hits and misses after all workers have reported: they do so every second, so two equal readings are
/// needed.
async fn cache_uses(boss: &Client) -> (i64, i64) {
    let mut before = None;
    loop {
        SystemClock::new().sleep(Duration::from_millis(2_200)).await;
        let row = boss.query_one(USES, &[]).await.expect("workers are shown");
        let now = (row.get(0), row.get(1));
        if before.replace(now) == Some(now) {
            return now;
        }
    }
}
