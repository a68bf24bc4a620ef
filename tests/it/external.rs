//! External tables: TPC-H gives the same answers on files as on tables, with and without the engine; cached files are
//! not read again.

use std::time::Duration;

use bench::{Suite, query_benchmark, result_comparison, table_load};
use tempfile::TempDir;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn files_answer_as_tables_do() {
    let server = Server::start();
    let client = server.connect().await;
    table_load::load(&client, Suite::Tpch, 0.05, &SystemClock::new(), |_| {}).await.expect("the data loads");
    let folder = TempDir::with_prefix("kiln-files-").expect("a temporary folder can be made");
    client.batch_execute("CREATE SCHEMA files").await.expect("a schema is made");
    for table in Suite::Tpch.tables() {
        let place = folder.path().join(table);
        std::fs::create_dir(&place).expect("the folder is ours");
        let place = place.display();
        // The largest table in two files.
        let parts = if table == "lineitem" { &["l_orderkey < 100000", "l_orderkey >= 100000"][..] } else { &["true"] };
        for (number, part) in parts.iter().enumerate() {
            let copy = format!(
                "COPY (SELECT * FROM public.{table} WHERE {part}) TO '{place}/{number}.parquet' (FORMAT parquet)"
            );
            client.batch_execute(&copy).await.expect("files are written");
        }
        let create = format!("CREATE EXTERNAL TABLE files.{table} STORED AS PARQUET LOCATION '{place}/*.parquet'");
        client.batch_execute(&create).await.expect("files are a table");
    }
    let mut wrong = Vec::new();
    for engine in ["off", "on"] {
        client.batch_execute(&format!("SET kiln.engine = {engine}")).await.expect("the engine is turned on and off");
        // Cold, then hot.
        for pass in ["cold", "hot"] {
            for (index, sql) in Suite::Tpch.queries().iter().enumerate() {
                let expected = query_in_schema(&client, "public", sql).await;
                let found = query_in_schema(&client, "files, public", sql).await;
                if let Err(difference) = result_comparison::compare(&expected, &found) {
                    wrong.push(format!("q{:02}, engine {engine}, {pass}: {difference}", index + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

async fn query_in_schema(client: &Client, path: &str, sql: &str) -> Vec<result_comparison::Row> {
    client.batch_execute(&format!("SET search_path = {path}")).await.expect("the path is set");
    query_benchmark::run_query(client, sql).await.unwrap_or_else(|error| panic!("of {path}: {sql}: {error:?}"))
}

/// Once a file's pages and footer are cached, the file is not read: its bytes may change as long as its metadata does
/// not.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_hot_is_not_read_again() {
    let server = Server::start();
    let client = server.connect().await;
    let folder = TempDir::with_prefix("kiln-files-").expect("a temporary folder can be made");
    let file = folder.path().join("a.parquet");
    let place = file.display();
    client
        .batch_execute(&format!(
            "COPY (SELECT n, 'word ' || n % 10 AS word FROM generate_series(1, 200000) n(n)) TO '{place}' (FORMAT parquet)"
        ))
        .await
        .expect("a file is written");
    // An old modification time: a recently written file may be rewritten without a visible change.
    let handle = std::fs::File::options().write(true).open(&file).expect("the file is ours");
    handle.set_modified(std::time::UNIX_EPOCH).expect("the file is ours");
    client
        .batch_execute(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{place}'"))
        .await
        .expect("the file is a table");
    let sql = "EXPLAIN (ANALYZE, VERBOSE, COSTS off, FORMAT json) SELECT word, count(*), sum(n) FROM t WHERE n > 10 GROUP BY word";
    let mut read = Vec::new();
    for _ in 0..3 {
        let row = client.query_one(sql, &[]).await.expect("the query is explained");
        let json: serde_json::Value = row.get(0);
        read.push(bytes_read(&json));
    }
    assert!(0 < read[0], "{read:?}");
    assert_eq!(read[2], 0, "{read:?}");
}

/// After a restart pages come from the disk cache, but only while the file is unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_of_a_file_comes_from_disk_after_a_restart() {
    let data = TempDir::with_prefix("kiln-data-").expect("a temporary folder can be made");
    let folder = TempDir::with_prefix("kiln-files-").expect("a temporary folder can be made");
    let file = folder.path().join("a.parquet");
    let write = async |client: &Client, rows: u32| {
        let copy = format!(
            "COPY (SELECT n, 'word ' || n % 10 AS word FROM generate_series(1, {rows}) n(n)) TO '{}' (FORMAT parquet)",
            file.display()
        );
        client.batch_execute(&copy).await.expect("a file is written");
        let handle = std::fs::File::options().write(true).open(&file).expect("the file is ours");
        handle.set_modified(std::time::UNIX_EPOCH).expect("the file is ours");
    };
    let sum = async |client: &Client| -> i64 {
        let sum = "SELECT sum(n + length(word))::int8 FROM t";
        client.query_one(sum, &[]).await.expect("it is answered").get(0)
    };
    let server = Server::start_on(data.path(), &["--fragment-cache-mb=0"]);
    let client = server.connect().await;
    write(&client, 150_000).await;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", file.display());
    client.batch_execute(&create).await.expect("the file is a table");
    let expected = sum(&client).await;
    let (blocks, _, _) = cache_stats(&client, "memory").await;
    assert!(0 < blocks, "what was read is kept");
    until_on_disk(&client, blocks).await;
    drop(client);
    server.kill();

    let server = Server::start_on(data.path(), &["--fragment-cache-mb=0"]);
    let client = server.connect().await;
    // Cached files are also checked some seconds after the start, before anything has listed the table's files.
    until_on_disk(&client, blocks).await;
    SystemClock::new().sleep(Duration::from_secs(3)).await;
    assert_eq!(cache_stats(&client, "disk").await, (blocks, 0, 0));
    assert_eq!(sum(&client).await, expected);
    assert_eq!(cache_stats(&client, "disk").await, (blocks, blocks, 0), "what was read before is read from disk");
    // New contents are read, and the pages of the old ones are dropped.
    write(&client, 140_000).await;
    let changed = sum(&client).await;
    assert!(changed < expected);
    let (_, hits, misses) = cache_stats(&client, "disk").await;
    assert_eq!((hits, misses), (blocks, blocks), "as many pages, all of them new");
    until_on_disk(&client, blocks).await;
    assert_eq!(sum(&client).await, changed);
}

/// Returns blocks, hits and misses of the table in a tier.
async fn cache_stats(client: &Client, tier: &str) -> (i64, i64, i64) {
    let query = "SELECT blocks, hits, misses FROM sys.cache WHERE tier = $1 AND table_name = 't'";
    let row = client.query_opt(query, &[&tier]).await.expect("it is a table");
    row.map_or((0, 0, 0), |row| (row.get(0), row.get(1), row.get(2)))
}

/// Waits for the background writing, checking and deletion of cache files.
async fn until_on_disk(client: &Client, blocks: i64) {
    for _ in 0..5_000 {
        if cache_stats(client, "disk").await.0 == blocks {
            return;
        }
        SystemClock::new().sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?} are on disk, not {blocks}", cache_stats(client, "disk").await);
}

/// Returns the bytes read by all scans of a plan.
fn bytes_read(plan: &serde_json::Value) -> u64 {
    match plan {
        serde_json::Value::Object(fields) => {
            let own = fields.get("Read Bytes").and_then(serde_json::Value::as_u64).unwrap_or_default();
            own + fields.values().map(bytes_read).sum::<u64>()
        }
        serde_json::Value::Array(items) => items.iter().map(bytes_read).sum(),
        _ => 0,
    }
}
