//! Time travel and restore: historical snapshots are readable, and a lost warehouse is restored from the storage
//! alone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::full_disk::objects;
use crate::server::{Server, kiln};

/// Longest wait for any event.
const HANGING: Duration = Duration::from_secs(120);

/// Waits until everything acknowledged so far is in the storage.
pub(crate) async fn until_copied(client: &Client) {
    let sql = "SELECT newest_record, copied_record FROM sys.history";
    let position = async || client.query_one(sql, &[]).await.expect("the server answers");
    let newest: i64 = position().await.get(0);
    let clock = SystemClock::new();
    while position().await.get::<_, i64>(1) < newest {
        assert!(clock.monotonic() < HANGING, "record {newest} is never copied");
        clock.sleep(Duration::from_millis(20)).await;
    }
}

/// Data folder, and a storage outside of it.
struct WarehouseFolders {
    folder: TempDir,
    storage: String,
}

impl WarehouseFolders {
    fn new() -> Self {
        let folder = TempDir::with_prefix("kiln-time-").expect("a temporary folder can be made");
        let storage = format!("file://{}", folder.path().join("storage").display());
        Self { folder, storage }
    }

    fn data(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, name: &str) -> Server {
        Server::start_on(&self.data(name), &["--storage", &self.storage])
    }

    fn restore(&self, name: &str, more: &[&str]) -> (bool, String) {
        restore(&self.data(name), &self.storage, more)
    }
}

fn restore(data: &Path, storage: &str, more: &[&str]) -> (bool, String) {
    let output = Command::new(kiln())
        .args(["restore", "--storage", storage, "--data"])
        .arg(data)
        .args(more)
        .output()
        .expect("kiln runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// Runs statements one by one: VACUUM is not allowed in a multi-statement string.
async fn run(client: &Client, sql: &str) {
    for sql in sql.split(';') {
        client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// Returns the single number of a query.
async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

async fn code(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.expect_err("it is refused");
    error.code().expect("the server says why").code().to_owned()
}

/// Returns all rows that a client can see.
async fn answers(client: &Client) -> Vec<String> {
    let sql = "SELECT 'order', id::text, note FROM orders
         UNION ALL SELECT 'customer', id::text, name FROM customers
         UNION ALL SELECT 'view', n::text, '' FROM order_count
         UNION ALL SELECT 'table', '', table_name::text FROM information_schema.tables WHERE table_schema = 'public'
         ORDER BY 1, 2, 3";
    let rows = client.query(sql, &[]).await.expect("the tables are there");
    rows.iter()
        .map(|row| format!("{} {} {}", row.get::<_, &str>(0), row.get::<_, &str>(1), row.get::<_, &str>(2)))
        .collect()
}

async fn fill(client: &Client) {
    run(
        client,
        "CREATE TABLE orders (id bigint PRIMARY KEY, note text);
         CREATE TABLE customers (id serial, name text) WITH (storage = row);
         CREATE VIEW order_count AS SELECT count(*) AS n FROM orders;
         INSERT INTO orders SELECT n, 'order ' || n FROM generate_series(1, 5000) n;
         VACUUM orders;
         DELETE FROM orders WHERE id % 10 = 0;
         UPDATE orders SET note = 'changed' WHERE id < 10;
         INSERT INTO customers (name) VALUES ('ana'), ('bob')",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_data_folder_comes_back_from_the_storage() {
    let house = WarehouseFolders::new();
    let server = house.start("a");
    let client = server.connect().await;
    fill(&client).await;
    let before = answers(&client).await;
    until_copied(&client).await;
    server.kill();
    std::fs::remove_dir_all(house.data("a")).expect("it is there");

    let (ok, text) = house.restore("a", &[]);
    assert!(ok, "{text}");
    assert!(text.contains("restored snapshot"), "{text}");
    let server = house.start("a");
    let client = server.connect().await;
    assert_eq!(answers(&client).await, before);
    // The warehouse continues: sequences do not repeat numbers, and writes persist.
    run(&client, "INSERT INTO customers (name) VALUES ('eve'); INSERT INTO orders VALUES (10, 'again')").await;
    assert_eq!(number(&client, "SELECT count(DISTINCT id) FROM customers").await, 3);
    let after = answers(&client).await;
    assert!(server.stop());

    // After a clean stop nothing is missing.
    std::fs::remove_dir_all(house.data("a")).expect("it is there");
    let (ok, text) = house.restore("a", &[]);
    assert!(ok, "{text}");
    let server = house.start("a");
    assert_eq!(answers(&server.connect().await).await, after);

    let (ok, text) = house.restore("a", &[]);
    assert!(!ok && text.contains("not empty"), "{text}");
    let nowhere = format!("{}-none", house.storage);
    let (ok, text) = restore(&house.data("b"), &nowhere, &[]);
    assert!(!ok && text.contains("no archived WAL and no checkpoint"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_is_restored_to_a_snapshot_and_to_a_time() {
    let house = WarehouseFolders::new();
    let server = house.start("a");
    let client = server.connect().await;
    fill(&client).await;
    let before = answers(&client).await;
    let snapshot = number(&client, "SELECT kiln_current_snapshot()").await;
    let time: String = client.query_one("SELECT clock_timestamp()::text", &[]).await.expect("it answers").get(0);
    run(&client, "DROP TABLE customers; TRUNCATE orders").await;
    assert!(server.stop());
    let (ok, text) = house.restore("b", &["--to", &snapshot.to_string()]);
    assert!(ok, "{text}");
    let server = house.start("b");
    let client = server.connect().await;
    assert_eq!(answers(&client).await, before);
    until_copied(&client).await;
    server.kill();
    // Restores follow the newest timeline, which includes the time.
    let (ok, text) = house.restore("c", &["--to", &time]);
    assert!(ok, "{text}");
    let server = house.start("c");
    assert_eq!(answers(&server.connect().await).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_warehouse_was_restored_elsewhere_stops() {
    let house = WarehouseFolders::new();
    let mut old = house.start("a");
    let client = old.connect().await;
    fill(&client).await;
    let before = answers(&client).await;
    until_copied(&client).await;
    let (ok, text) = house.restore("b", &[]);
    assert!(ok, "{text}");
    // A restore by itself does not affect the running server.
    run(&client, "CREATE TABLE lost (n int)").await;
    let new = house.start("b");
    let mut ended = None;
    let clock = SystemClock::new();
    while ended.is_none() && clock.monotonic() < HANGING {
        // Writes that it still accepts are lost.
        let _ = client.batch_execute("INSERT INTO lost VALUES (1)").await;
        ended = old.exit_status().await;
    }
    assert!(!ended.expect("it stops").success(), "it says that it failed");
    assert!(old.log().contains("another server has claimed the storage"), "{}", old.log());
    let again = Server::try_start_on(&house.data("a"), &["--storage", &house.storage]);
    let refused = again.err().expect("the old data folder is left behind");
    assert!(refused.contains("abandoned timeline"), "{refused}");
    let client = new.connect().await;
    assert_eq!(answers(&client).await, before);
    run(&client, "INSERT INTO orders VALUES (10, 'again'); VACUUM").await;
    let after = answers(&client).await;
    assert!(new.stop());
    let server = house.start("b");
    assert_eq!(answers(&server.connect().await).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_views_are_read_as_they_were() {
    let house = WarehouseFolders::new();
    let mut server = house.start("a");
    let mut client = server.connect().await;
    fill(&client).await;
    let snapshot = number(&client, "SELECT kiln_current_snapshot()").await;
    let time: String = client.query_one("SELECT clock_timestamp()::text", &[]).await.expect("it answers").get(0);
    run(
        &client,
        "DELETE FROM orders WHERE id > 100; UPDATE orders SET note = 'new'; INSERT INTO orders VALUES (7000, 'later');
         ALTER TABLE orders ADD COLUMN more int; VACUUM orders; DROP TABLE customers",
    )
    .await;
    // Immediately after the commits, and after a restart with nothing in memory.
    for round in 0..2 {
        for moment in [format!("SNAPSHOT {snapshot}"), format!("TIMESTAMP '{time}'")] {
            let count = |of: &str| format!("SELECT count(*) FROM {of} AS OF {moment}");
            assert_eq!(number(&client, &count("orders")).await, 4_500, "round {round}");
            assert_eq!(number(&client, "SELECT count(*) FROM orders").await, 91, "round {round}");
            assert_eq!(number(&client, &format!("SELECT n FROM order_count AS OF {moment} v")).await, 4_500);
            assert_eq!(number(&client, &count("customers")).await, 2, "dropped since");
            let changed = format!("SELECT count(*) FROM public.orders AS OF {moment} AS o WHERE o.note = 'changed'");
            assert_eq!(number(&client, &changed).await, 9);
            let gone = format!(
                "SELECT count(*) FROM orders AS OF {moment} was LEFT JOIN orders now USING (id) WHERE now.id IS NULL"
            );
            assert_eq!(number(&client, &gone).await, 4_410);
            let inside = format!("SELECT (SELECT max(id) FROM orders AS OF {moment}) - max(id) FROM orders");
            assert_eq!(number(&client, &inside).await, 4_999 - 7_000);
            let columns = client.query(&format!("SELECT * FROM orders AS OF {moment} LIMIT 1"), &[]).await;
            assert_eq!(columns.expect("it answers")[0].len(), 2, "the table had two columns");
            let prepared = format!("SELECT note FROM orders AS OF {moment} WHERE id = $1");
            let note: String = client.query_one(&prepared, &[&5_i64]).await.expect("it answers").get(0);
            assert_eq!(note, "changed");
        }
        if round == 0 {
            assert!(server.stop());
            server = house.start("a");
            client = server.connect().await;
        }
    }
    assert_eq!(code(&client, "SELECT * FROM orders AS OF SNAPSHOT 999999999").await, "22023");
    assert_eq!(code(&client, "SELECT * FROM orders AS OF TIMESTAMP '2999-01-01'").await, "22023");
    assert_eq!(code(&client, "SELECT * FROM orders AS OF TIMESTAMP '2001-01-01'").await, "72000");
    assert_eq!(code(&client, "SELECT * FROM orders AS OF SNAPSHOT 1").await, "42P01");
    assert_eq!(code(&client, "SELECT * FROM pg_class AS OF SNAPSHOT 1").await, "0A000");
    let locking = format!("SELECT * FROM orders AS OF SNAPSHOT {snapshot} FOR UPDATE");
    assert_eq!(code(&client, &locking).await, "0A000");
    let view = format!("CREATE VIEW v AS SELECT * FROM orders AS OF SNAPSHOT {snapshot}");
    assert_eq!(code(&client, &view).await, "0A000");
    // Historical rows can be used like others.
    run(
        &client,
        &format!("INSERT INTO orders (id, note) SELECT id, note FROM orders AS OF SNAPSHOT {snapshot} WHERE id > 100"),
    )
    .await;
    assert_eq!(number(&client, "SELECT count(*) FROM orders").await, 4_501);
    // OF is still allowed as a name.
    assert_eq!(number(&client, "SELECT max(of.id) FROM orders AS of").await, 7_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_can_be_a_parameter() {
    let house = WarehouseFolders::new();
    let server = house.start("a");
    let mut client = server.connect().await;
    run(
        &client,
        "CREATE TABLE t (id bigint PRIMARY KEY, note text) WITH (storage = row); INSERT INTO t VALUES (1, 'a')",
    )
    .await;
    let mut moments: Vec<(i64, i64)> = Vec::new();
    for id in 2..=20 {
        run(&client, &format!("INSERT INTO t VALUES ({id}, 'b')")).await;
        moments.push((id, number(&client, "SELECT kiln_current_snapshot()").await));
    }
    let counted = client.prepare("SELECT count(*) FROM t AS OF SNAPSHOT $1 WHERE id <= $2").await.expect("it plans");
    assert_eq!(counted.params(), [tokio_postgres::types::Type::INT8, tokio_postgres::types::Type::INT8]);
    for (count, snapshot) in &moments {
        let row = client.query_one(&counted, &[snapshot, &1_000_i64]).await.expect("it answers");
        assert_eq!(row.get::<_, i64>(0), *count);
    }
    let (first, snapshot) = moments[0];
    // A transaction that reads a historical snapshot does not conflict with current writes.
    let other = server.connect().await;
    let serializable = client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::Serializable);
    let transaction = serializable.start().await.expect("it begins");
    let row = transaction.query_one(&counted, &[&snapshot, &1_000_i64]).await.expect("it answers");
    assert_eq!(row.get::<_, i64>(0), first);
    run(&other, "UPDATE t SET note = 'c' WHERE id = 1").await;
    transaction.batch_execute("INSERT INTO t VALUES (30, 'd')").await.expect("it writes");
    transaction.commit().await.expect("nothing that it has read was written");
    // One that reads the current table does.
    let serializable = client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::Serializable);
    let transaction = serializable.start().await.expect("it begins");
    transaction.query_one("SELECT count(*) FROM t", &[]).await.expect("it answers");
    run(&other, "UPDATE t SET note = 'e' WHERE id = 1").await;
    transaction.batch_execute("INSERT INTO t VALUES (31, 'd')").await.expect("it writes");
    let error = transaction.commit().await.expect_err("what it has read was written");
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("40001"));
    // The columns are those at the time of preparing.
    let all = client.prepare("SELECT * FROM t AS OF SNAPSHOT $1").await.expect("it plans");
    run(&other, "ALTER TABLE t DROP COLUMN note").await;
    let now = number(&client, "SELECT kiln_current_snapshot()").await;
    assert_eq!(client.query(&all, &[&snapshot]).await.expect("it answers")[0].len(), 2);
    let error = client.query(&all, &[&now]).await.expect_err("it has one column now");
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("0A000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_lives_on_by_itself() {
    let house = WarehouseFolders::new();
    let mut server = house.start("a");
    let mut client = server.connect().await;
    fill(&client).await;
    let files = || count_files(&house.folder.path().join("storage/tables"));
    let before = files();
    run(&client, "CREATE TABLE copy CLONE orders; CREATE TABLE people CLONE customers").await;
    assert_eq!(files(), before, "no bytes are copied");
    assert_eq!(number(&client, "SELECT count(*) FROM copy").await, 4_500);
    let same = "SELECT count(*) FROM (TABLE copy EXCEPT TABLE orders) d";
    assert_eq!(number(&client, same).await, 0);
    // Original and clone change independently.
    run(&client, "UPDATE copy SET note = 'mine' WHERE id <= 50; DELETE FROM orders WHERE id > 50; VACUUM").await;
    assert_eq!(number(&client, "SELECT count(*) FROM copy").await, 4_500);
    assert_eq!(number(&client, "SELECT count(*) FROM copy WHERE note = 'mine'").await, 45);
    assert_eq!(number(&client, "SELECT count(*) FROM orders").await, 45);
    assert_eq!(number(&client, "SELECT count(*) FROM orders WHERE note = 'mine'").await, 0);
    run(&client, "INSERT INTO people (name) VALUES ('eve'); INSERT INTO customers (name) VALUES ('bea')").await;
    assert_eq!(number(&client, "SELECT max(id)::bigint FROM people").await, 3, "numbers go on");
    run(&client, "DROP TABLE customers; DROP VIEW order_count; DROP TABLE orders").await;
    assert_eq!(number(&client, "SELECT count(*) FROM people").await, 3);
    for round in 0..2 {
        assert_eq!(number(&client, "SELECT count(*) FROM copy").await, 4_500, "round {round}");
        assert_eq!(number(&client, "SELECT sum(id)::bigint FROM copy").await, 11_250_000, "round {round}");
        if round == 0 {
            until_copied(&client).await;
            server.kill();
            server = house.start("a");
            client = server.connect().await;
        }
    }
    // Clones of historical snapshots work as well.
    let snapshot = number(&client, "SELECT kiln_current_snapshot()").await;
    run(&client, &format!("TRUNCATE copy; CREATE TABLE was CLONE copy AS OF SNAPSHOT {snapshot}")).await;
    assert_eq!(number(&client, "SELECT count(*) FROM was").await, 4_500);
    assert_eq!(number(&client, "SELECT count(*) FROM copy").await, 0);
    assert_eq!(code(&client, "CREATE TABLE was CLONE copy").await, "42P07");
    assert_eq!(code(&client, "CREATE TABLE other CLONE nothing").await, "42P01");
    assert_eq!(code(&client, "CREATE TABLE other CLONE pg_class").await, "42501");
    // In a transaction the clone has the transaction's view, and is rolled back with it.
    run(&client, "BEGIN; DELETE FROM was WHERE id > 10; CREATE TABLE few CLONE was; ROLLBACK").await;
    run(&client, "BEGIN; DELETE FROM was WHERE id > 11; CREATE TABLE few CLONE was; COMMIT").await;
    assert_eq!(number(&client, "SELECT count(*) FROM few").await, 10);
    check(&client, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_table_comes_back() {
    let house = WarehouseFolders::new();
    let mut server = house.start("a");
    let mut client = server.connect().await;
    fill(&client).await;
    run(&client, "DROP VIEW order_count").await;
    for round in 0..2 {
        run(&client, "DROP TABLE orders; DROP TABLE customers").await;
        if round == 1 {
            assert!(server.stop());
            server = house.start("a");
            client = server.connect().await;
        }
        run(&client, "UNDROP TABLE orders; UNDROP TABLE public.customers").await;
        assert_eq!(number(&client, "SELECT count(*) FROM orders").await, 4_500, "round {round}");
        assert_eq!(number(&client, "SELECT count(*) FROM orders WHERE note = 'changed'").await, 9, "round {round}");
        assert_eq!(number(&client, "SELECT count(*) FROM customers").await, 2 + round, "round {round}");
        run(&client, "INSERT INTO customers (name) VALUES ('eve')").await;
        assert_eq!(number(&client, "SELECT count(DISTINCT id) FROM customers").await, 3 + round, "round {round}");
    }
    assert_eq!(code(&client, "UNDROP TABLE orders").await, "42P07");
    assert_eq!(code(&client, "UNDROP TABLE nothing").await, "42P01");
    run(&client, "DROP TABLE orders; CREATE TABLE orders (a int)").await;
    assert_eq!(code(&client, "UNDROP TABLE orders").await, "42P07");
    run(
        &client,
        "ALTER TABLE orders RENAME TO others; UNDROP TABLE orders; DROP TABLE others; BEGIN; DROP TABLE orders",
    )
    .await;
    // The transaction's own drop is not committed yet.
    assert_eq!(code(&client, "UNDROP TABLE orders").await, "42P01");
    run(&client, "ROLLBACK").await;
    assert_eq!(number(&client, "SELECT count(*) FROM orders").await, 4_500);
    check(&client, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_in_the_storage_is_accounted_for() {
    let house = WarehouseFolders::new();
    let mut server = house.start("a");
    let mut client = server.connect().await;
    fill(&client).await;
    check(&client, &[]).await;
    run(&client, "DELETE FROM orders WHERE id > 2000; VACUUM; DROP TABLE customers; TRUNCATE orders").await;
    let classes = check(&client, &[]).await;
    assert!(classes.contains(&"retained".to_owned()), "{classes:?}");
    // Killed in the middle of a load.
    let loading = server.connect().await;
    let load = "INSERT INTO orders SELECT n, repeat('x', 100) || n FROM generate_series(1, 3000000) n";
    let load = tokio::spawn(async move { loading.batch_execute(load).await });
    let (storage, clock) = (house.folder.path().join("storage"), SystemClock::new());
    let before = objects(&storage.join("tables"));
    while objects(&storage.join("tables")) == before {
        assert!(!load.is_finished() && clock.monotonic() < HANGING, "the load writes its first object before it ends");
        clock.sleep(Duration::from_millis(2)).await;
    }
    server.kill();
    let _ = load.await;
    server = house.start("a");
    client = server.connect().await;
    check(&client, &[]).await;
    std::fs::write(storage.join("tables/stranger.txt"), "by hand").expect("the folder is there");
    check(&client, &["tables/stranger.txt"]).await;
    run(&client, "TRUNCATE orders; INSERT INTO orders SELECT n FROM generate_series(1, 300000) n; VACUUM").await;
    let object: String =
        client.query_one("SELECT object FROM sys.shard LIMIT 1", &[]).await.expect("it is there").get(0);
    std::fs::remove_file(storage.join(&object)).expect("it is there");
    let rows = client.query("CHECK STORAGE", &[]).await.expect("it answers");
    let missing: Vec<String> =
        rows.iter().filter(|row| row.get::<_, &str>(0) == "missing").map(|row| row.get(1)).collect();
    assert_eq!(missing, [object]);
    run(&client, "CREATE ROLE ana LOGIN; SET ROLE ana").await;
    assert_eq!(code(&client, "CHECK STORAGE").await, "42501");
    run(&client, "RESET ROLE").await;
    let waiting = "SELECT count(*) FROM sys.history WHERE upload_failures = 0 AND copied_record <= newest_record";
    assert_eq!(number(&client, waiting).await, 1);
}

/// Checks that CHECK STORAGE is consistent, reports no missing object and these orphans; returns its classes.
async fn check(client: &Client, orphans: &[&str]) -> Vec<String> {
    let rows = client.query("CHECK STORAGE", &[]).await.expect("it answers");
    let class = |row: &tokio_postgres::Row| row.get::<_, String>(0);
    let found: Vec<String> = rows.iter().filter(|row| class(row) == "orphan").map(|row| row.get(1)).collect();
    assert_eq!(found, orphans);
    assert!(rows.iter().all(|row| class(row) != "missing"), "something is missing");
    for column in [2, 3] {
        let sum = |total: bool| -> i64 {
            rows.iter().filter(|row| (class(row) == "total") == total).map(|row| row.get::<_, i64>(column)).sum()
        };
        assert_eq!(sum(false), sum(true));
    }
    rows.iter().map(class).collect()
}

fn count_files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|entry| if entry.path().is_dir() { count_files(&entry.path()) } else { 1 }).sum()
}
