//! Starts, stops and restarts: persisted state, refused starts, and orderly shutdown.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::server::{Server, kiln};

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_after_a_restart_and_after_a_kill() {
    let folder = TempDir::with_prefix("kiln-lifecycle-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &[]);
    server
        .connect()
        .await
        .batch_execute(
            "CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY, b text DEFAULT 'none', c numeric(10,2) CHECK (c > 0));
             CREATE VIEW s.v AS SELECT a, b FROM s.t WHERE a > 1; COMMENT ON TABLE s.t IS 'kept';
             INSERT INTO s.t VALUES (1, 'one', 1.5), (2, 'two', 2.25), (3, DEFAULT, NULL)",
        )
        .await
        .expect("the statements run");
    assert!(server.stop(), "it ends cleanly");

    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    let rows = client.query("SELECT a, b FROM s.v ORDER BY a", &[]).await.expect("the view is there");
    let rows: Vec<(i32, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(2, "two".to_owned()), (3, "none".to_owned())]);
    client.batch_execute("INSERT INTO s.t (a) VALUES (4)").await.expect("the default is there");
    server.kill();

    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    let count: i64 = client.query_one("SELECT count(*) FROM s.t", &[]).await.expect("the table is there").get(0);
    assert_eq!(count, 4, "an acknowledged row outlives kill -9");
    let comment: String = client
        .query_one("SELECT obj_description('s.t'::regclass, 'pg_class')", &[])
        .await
        .expect("the comment is there")
        .get(0);
    assert_eq!(comment, "kept");
    let refused = client.batch_execute("INSERT INTO s.t (a, c) VALUES (5, -1)").await.expect_err("the check is there");
    assert_eq!(refused.code(), Some(&SqlState::CHECK_VIOLATION));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_and_a_storage_have_one_instance() {
    let folder = TempDir::with_prefix("kiln-lifecycle-").expect("a temporary folder can be made");
    let first = Server::start_on(folder.path(), &[]);
    let storage = format!("file://{}", folder.path().join("storage").display());

    let log = Server::try_start_on(folder.path(), &[]).err().expect("a second server on the folder is refused");
    assert!(log.contains("catalog"), "it says what is in use: {log}");

    let other = TempDir::with_prefix("kiln-lifecycle-").expect("a temporary folder can be made");
    let log = Server::try_start_on(other.path(), &["--storage", &storage])
        .err()
        .expect("another instance on the storage is refused");
    assert!(log.contains("claim"), "it says that the storage is claimed: {log}");
    assert!(log.contains(&folder.path().display().to_string()), "it says by whom: {log}");
    drop(first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_lets_statements_finish_or_cancels_them_with_57p01() {
    let server = Server::start_with(&["--shutdown-grace", "10"], &[]);
    let (quick, slow) = (server.connect().await, server.connect().await);
    // One message each: a session that has prepared a statement but not sent the next message is idle, and is ended
    // immediately.
    let quick = tokio::spawn(async move { quick.simple_query("SELECT pg_sleep(1), 7").await });
    let slow = tokio::spawn(async move { slow.simple_query("SELECT pg_sleep(600)").await });
    let clock = SystemClock::new();
    let witness = server.connect().await;
    let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'";
    while witness.query_one(running, &[]).await.expect("it answers").get::<_, i64>(0) < 2 {
        clock.sleep(Duration::from_millis(10)).await;
    }

    let started = clock.monotonic();
    let clean = tokio::task::spawn_blocking(move || server.stop()).await.expect("waiting does not panic");
    assert!(clean, "it ends cleanly");
    assert!(
        clock.monotonic() - started < Duration::from_secs(300),
        "it ends after the grace period, before what runs does"
    );
    quick.await.expect("no panic").expect("what ends within the grace period is answered");
    let cancelled = slow.await.expect("no panic").expect_err("the rest is cancelled");
    assert_eq!(cancelled.code(), Some(&SqlState::ADMIN_SHUTDOWN));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_are_served() {
    let server = Server::start();
    server.connect().await.batch_execute("SELECT 1").await.expect("it answers");
    assert!(get(server.http_port, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(server.http_port, "/readyz").starts_with("HTTP/1.1 200"));
    let metrics = get(server.http_port, "/metrics");
    assert!(metrics.contains("kiln_statements_total"), "statements are counted: {metrics}");
    assert!(get(server.http_port, "/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn wrong_settings_are_refused_with_their_reason() {
    let folder = TempDir::with_prefix("kiln-lifecycle-").expect("a temporary folder can be made");
    let refused = |arguments: &[&str]| {
        let output = Command::new(kiln())
            .arg("serve")
            .arg("--data")
            .arg(folder.path())
            .args(arguments)
            .output()
            .expect("kiln runs");
        assert!(!output.status.success(), "{arguments:?} is refused");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--storage", "ftp://somewhere"]).contains("ftp"));
    assert!(refused(&["--tls-cert", "only.pem"]).contains("--tls-key"));
    assert!(refused(&["--listen", "nowhere"]).contains("--listen"));
    std::fs::write(folder.path().join("kiln.toml"), "lisen = \"127.0.0.1:1\"").expect("the folder is ours");
    assert!(refused(&[]).contains("lisen"));
}

pub(crate) fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}
