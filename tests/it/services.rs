//! Background services: one that panics is restarted, and one whose work fails is reported until it succeeds.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::cluster::wait_until;
use crate::lifecycle::get;
use crate::server::Server;

/// Service as `sys.service` shows it.
struct Service {
    state: String,
    restarts: i64,
    last_error: Option<String>,
}

async fn service(client: &Client, name: &str) -> Service {
    let query = "SELECT state, restarts, last_error FROM sys.service WHERE name = $1";
    let row = client.query_one(query, &[&name]).await.unwrap_or_else(|error| panic!("no service {name}: {error}"));
    Service { state: row.get(0), restarts: row.get(1), last_error: row.get(2) }
}

/// Waits until a service satisfies `is_so`, at most two minutes.
async fn wait_for(client: &Client, name: &str, is_so: impl Fn(&Service) -> bool) -> Service {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    loop {
        let service = service(client, name).await;
        if is_so(&service) {
            return service;
        }
        let Service { state, restarts, last_error } = service;
        let waited = clock.monotonic() - begun;
        assert!(waited < Duration::from_secs(120), "{name} is {state} after {restarts} restarts: {last_error:?}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_service_that_panics_is_started_again_and_does_its_work() {
    let server = Server::start_with(&["--settle-rows", "1"], &[("KILN_FAILPOINT", "sealed:1:panic")]);
    let client = server.connect().await;
    assert_eq!(service(&client, "settler").await.restarts, 0);
    client.batch_execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2), (3)").await.expect("rows are taken");
    let settler = wait_for(&client, "settler", |settler| settler.restarts == 1).await;
    assert_eq!(settler.last_error.as_deref(), Some("it panicked: injected at sealed"));
    wait_until(&client, "SELECT shards = 1 AND (SELECT sum(n) FROM t) = 6 FROM sys.table WHERE table_name = 't'").await;
    assert_eq!(service(&client, "settler").await.state, "running");
    assert!(server.log().contains("a background service has ended; it is started again"), "{}", server.log());
}

#[tokio::test]
async fn services_whose_work_fails_are_named_until_it_succeeds() {
    let folder = TempDir::with_prefix("kiln-services-").expect("a temporary folder can be made");
    let storage = folder.path().join("storage");
    let url = format!("file://{}", storage.display());
    let server = Server::start_on(&folder.path().join("data"), &["--storage", &url, "--settle-rows", "1"]);
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (n int)").await.expect("the table is made");

    // A file blocks the folder in which objects are written before they are renamed; the claim can still be read.
    let (workspace, aside) = (storage.join(".kiln"), folder.path().join("aside"));
    fs::rename(&workspace, &aside).expect("the folder can be moved");
    fs::write(&workspace, "in the way").expect("a file takes its place");
    client.batch_execute("INSERT INTO t VALUES (1), (2), (3)").await.expect("rows are taken: the log has room");
    for name in ["archiver", "settler"] {
        let failing = wait_for(&client, name, |service| service.state == "failing").await;
        assert!(failing.last_error.is_some_and(|error| !error.is_empty()) && failing.restarts == 0, "{name}");
        let ready = get(server.http_port, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 200") && ready.contains(&format!("service {name} is failing")), "{ready}");
    }
    let failing = get(server.http_port, "/metrics")
        .lines()
        .find_map(|line| line.strip_prefix("kiln_failing_services ").and_then(|count| count.parse::<i64>().ok()));
    assert!(failing.is_some_and(|failing| 2 <= failing), "{failing:?}");

    fs::remove_file(&workspace).expect("the file can be removed");
    fs::rename(&aside, &workspace).expect("the folder comes back");
    for name in ["archiver", "settler"] {
        let well = wait_for(&client, name, |service| service.state == "running").await;
        assert_eq!((well.last_error, well.restarts), (None, 0), "{name}");
        assert!(!get(server.http_port, "/readyz").contains(name), "{name}");
    }
    let settled = "SELECT shards = 1 FROM sys.table WHERE table_name = 't'";
    wait_until(&client, settled).await;
}
