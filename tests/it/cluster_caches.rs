//! What workers have in their caches when a cluster grows: the new one does not begin with nothing.

use std::time::Duration;

use bench::{Suite, load, run};
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::cluster::until;
use crate::server::Server;

const SCALE: f64 = 0.3;
/// Pages of a local disk are kept when they are read for the third time, and what is kept is hot when it is asked for again.
const ROUNDS: usize = 5;
const TWO: &str = "CREATE CLUSTER growing WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
const READY: &str = "SELECT count(*) = $ FROM sys.worker WHERE cluster = 'growing' AND state = 'ready'";
const USES: &str = "SELECT coalesce(sum(cache_hits), 0)::int8, coalesce(sum(cache_misses), 0)::int8 \
                    FROM sys.worker WHERE cluster = 'growing' AND state = 'ready'";

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_added_has_what_it_owns_in_its_cache() {
    let server = Server::start();
    let boss = server.connect().await;
    load::load(&boss, Suite::Tpch, SCALE, &SystemClock::new(), |_| {}).await.expect("the data loads");
    boss.batch_execute(TWO).await.expect("a cluster can be made");
    until(&boss, &READY.replace('$', "2")).await;
    let client = server.connect().await;
    let settings = "USE CLUSTER growing; SET min_parallel_table_scan_size = 0; SET kiln.fragment_cache = off";
    client.batch_execute(settings).await.expect("the cluster is there");
    for _ in 0..ROUNDS {
        all_queries(&client).await;
    }
    let (before, _) = round(&boss, &client).await;

    boss.batch_execute("ALTER CLUSTER growing SET (NODE_COUNT = 3)").await.expect("it grows");
    until(&boss, &READY.replace('$', "3")).await;
    // The third owns nothing before it has taken over.
    let third = "SELECT cache_bytes > 0 FROM sys.worker WHERE cluster = 'growing' AND slot = 2 AND state = 'ready'";
    until(&boss, third).await;
    let (after, divided) = round(&boss, &client).await;
    println!("{:.0} % of blocks were found in memory before, {:.0} % after", before * 100.0, after * 100.0);
    assert!(divided, "the third has a part of the work");
    assert!(0.8 < after, "{after} of the blocks that were asked for were there, {before} before");
}

/// All queries once more: which part of the blocks that they asked for was there, and whether three workers ran the first of them.
async fn round(boss: &Client, client: &Client) -> (f64, bool) {
    let (hits, misses) = uses(boss).await;
    let plan = run::query(client, &format!("EXPLAIN (ANALYZE) {}", Suite::Tpch.queries()[0])).await;
    let plan = plan.expect("it is explained");
    let divided = plan.iter().flatten().flatten().any(|line| line == "Runs: on 3 workers");
    all_queries(client).await;
    let (hits, misses) = (uses(boss).await.0 - hits, uses(boss).await.1 - misses);
    (hits as f64 / (hits + misses).max(1) as f64, divided)
}

async fn all_queries(client: &Client) {
    for sql in Suite::Tpch.queries().iter().filter(|sql| !sql.contains("CREATE")) {
        run::query(client, sql).await.expect("each query has an answer");
    }
}

/// Hits and misses, once workers have said so: they do each second.
async fn uses(boss: &Client) -> (i64, i64) {
    SystemClock::new().sleep(Duration::from_millis(2_200)).await;
    let row = boss.query_one(USES, &[]).await.expect("workers are shown");
    (row.get(0), row.get(1))
}
