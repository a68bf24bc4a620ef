//! Tables distributed by a key, on worker processes: joins on the key need no shuffle, before and after the cluster
//! grows.

use bench::query_benchmark;
use tokio_postgres::Client;

use crate::cluster::wait_until;
use crate::server::Server;

const TABLES: &str = "CREATE TABLE a (k bigint, v int) DISTRIBUTE ON (k); CREATE TABLE b (k int, w text)";
const ROWS: &str = "INSERT INTO a SELECT i % 5000, i FROM generate_series(1, 40000) AS g(i);
                    INSERT INTO b SELECT i % 7000, 'w' || i FROM generate_series(1, 30000) AS g(i)";
const TWO: &str = "CREATE CLUSTER pair WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
const READY: &str = "SELECT count(*) = $ FROM sys.worker WHERE cluster = 'pair' AND state = 'ready'";
const SETTINGS: &str = "USE CLUSTER pair; SET min_parallel_table_scan_size = 0";
const JOINED: &str = "SELECT b.k, count(*), sum(v), min(w) FROM a RIGHT JOIN b ON a.k = b.k GROUP BY b.k ORDER BY b.k";

#[tokio::test(flavor = "multi_thread")]
async fn joins_on_the_key_stay_where_they_are() {
    let server = Server::start();
    let boss = server.connect().await;
    boss.batch_execute(TABLES).await.expect("tables can be made");
    boss.batch_execute(ROWS).await.expect("rows can be added");
    boss.batch_execute("VACUUM").await.expect("rows can settle");
    boss.batch_execute(TWO).await.expect("a cluster can be made");
    wait_until(&boss, &READY.replace('$', "2")).await;
    let client = server.connect().await;
    client.batch_execute(SETTINGS).await.expect("the cluster is there");
    let expected = query_benchmark::run_query(&boss, JOINED).await.expect("the server answers");

    let plan = explained(&client).await;
    assert!(plan.contains("Runs: on 2 workers") && !plan.contains("co-located"), "{plan}");
    assert_eq!(query_benchmark::run_query(&client, JOINED).await.expect("workers answer"), expected);
    boss.batch_execute("ALTER TABLE b SET DISTRIBUTE ON (k)").await.expect("it can be distributed");
    let plan = explained(&client).await;
    assert!(plan.contains("1 of 1 shards written otherwise") && !plan.contains("co-located"), "{plan}");
    boss.batch_execute("VACUUM b").await.expect("it is written anew");
    for workers in [2, 3] {
        boss.batch_execute(&format!("ALTER CLUSTER pair SET (NODE_COUNT = {workers})")).await.expect("it grows");
        wait_until(&boss, &READY.replace('$', &workers.to_string())).await;
        let plan = explained(&client).await;
        assert!(plan.contains("Mode: co-located") && !plan.contains("Shuffle"), "{plan}");
        assert_eq!(query_benchmark::run_query(&client, JOINED).await.expect("workers answer"), expected);
    }
}

async fn explained(client: &Client) -> String {
    let plan =
        query_benchmark::run_query(client, &format!("EXPLAIN (ANALYZE) {JOINED}")).await.expect("it is explained");
    plan.into_iter().flatten().flatten().collect::<Vec<_>>().join("\n")
}
