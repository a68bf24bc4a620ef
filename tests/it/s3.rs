//! Storage on a real S3 server, which runs as a separate process.

use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use objects::{Fault, FaultStore, Objects, StorageClaim, conformance};
use tempfile::TempDir;
use types::random::SeededRandom;
use types::{Clock, SystemClock, SystemRandom};
use uuid::Uuid;

use crate::postgres::free_port;
use crate::server::Server;

/// Bucket on each server.
const BUCKET: &str = "warehouse";

/// Exit status of the script if there is no server to run.
const NO_SERVER: i32 = 3;

/// Longest start: building the server the first time takes minutes.
const START_TIME_MAX: Duration = Duration::from_secs(900);

/// Running S3 server with one empty bucket, stopped when dropped.
pub(crate) struct S3 {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl S3 {
    /// Starts a server; prints a line and returns `None` if none is available.
    #[expect(clippy::print_stdout, reason = "a test that was skipped says so where its outcome is read")]
    pub(crate) async fn start() -> Option<Self> {
        let folder = TempDir::with_prefix("kiln-s3-").expect("a temporary folder can be made");
        std::fs::create_dir_all(folder.path().join("buckets").join(BUCKET)).expect("the folder is ours");
        let port = free_port();
        let process = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/s3.sh"))
            .arg(port.to_string())
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the script is part of the tests");
        let mut server = Self { process, port, folder };
        let clock = SystemClock::new();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = server.process.try_wait().expect("it is our child") {
                let mut reason = String::new();
                let stderr = server.process.stderr.as_mut().expect("its errors are piped");
                stderr.read_to_string(&mut reason).expect("errors are text");
                assert_eq!(status.code(), Some(NO_SERVER), "the S3 server did not start: {reason}");
                println!("skipped: {}", reason.trim());
                return None;
            }
            assert!(clock.monotonic() < START_TIME_MAX, "the S3 server serves in time");
            clock.sleep(Duration::from_millis(50)).await;
        }
        Some(server)
    }

    /// Returns the URL of a prefix in the bucket.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// Returns the environment variables that direct a client to this server.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "kiln-test"),
            ("AWS_SECRET_ACCESS_KEY", "kiln-test-secret"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Returns true if the server has parts of uploads that were neither completed nor aborted.
    fn holds_parts(&self) -> bool {
        // The server stores them in a hidden folder of the bucket.
        let uploads = self.folder.path().join("buckets").join(BUCKET).join(".sgwtmp/multipart");
        std::fs::read_dir(uploads).is_ok_and(|mut entries| entries.next().is_some())
    }

    fn open(&self, prefix: &str) -> Objects {
        let clock = Arc::new(SystemClock::new());
        Objects::open_with(&self.url(prefix), self.variables(), clock, Arc::new(SystemRandom))
            .expect("the URL is right")
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_s3_server_is_a_storage() {
    let Some(server) = S3::start().await else { return };
    conformance::check(&server.open("some/prefix")).await;

    // A dropped writer cleans up in the background.
    let clock = SystemClock::new();
    while server.holds_parts() {
        assert!(clock.monotonic() < Duration::from_secs(30), "parts of an abandoned upload stay in the bucket");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

/// Tests the whole path over the wire: tables in the bucket, and files beside them for COPY, CSV and Parquet.
#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_on_a_bucket_answers_and_loads_from_it() {
    let Some(bucket) = S3::start().await else { return };
    let variables = bucket.variables();
    let variables: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let storage = bucket.url("instance");
    let server = Server::start_with(&["--storage", &storage], &variables);
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE a (i int, t text); CREATE TABLE b (i int, t text);
             INSERT INTO a SELECT i, 'word ' || i FROM generate_series(1, 50000) AS g(i)",
        )
        .await
        .expect("tables lie in the bucket");

    let files = bucket.folder.path().join("buckets").join(BUCKET).join("incoming");
    std::fs::create_dir_all(&files).expect("the folder is ours");
    let lines: String = (1..=30_000).map(|i| format!("{i},word {i}\n")).collect();
    std::fs::write(files.join("1.csv"), format!("i,t\n{lines}")).expect("the folder is ours");
    std::fs::write(files.join("broken.csv"), "i,t\n1,one\nx,two\n").expect("the folder is ours");
    let source = bucket.url("incoming/1.csv");
    client.batch_execute(&format!("COPY b FROM '{source}' (FORMAT csv, HEADER)")).await.expect("the object is there");
    let same = "SELECT count(*), sum(b.i) FROM a JOIN b USING (i, t)";
    let row = client.query_one(same, &[]).await.expect("both have rows");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (30_000, 450_015_000));

    let broken = bucket.url("incoming/broken.csv");
    let refused = client
        .batch_execute(&format!("COPY b FROM '{broken}' (FORMAT csv, HEADER)"))
        .await
        .expect_err("a number is none");
    let told = refused.as_db_error().expect("the server says it");
    assert_eq!(told.code().code(), "22P02");
    assert!(told.where_().is_some_and(|place| place.contains(&broken) && place.contains("line 3")), "{told:?}");
    let missing = bucket.url("incoming/none.csv");
    let refused = client.batch_execute(&format!("COPY b FROM '{missing}' (FORMAT csv)")).await.expect_err("no object");
    assert_eq!(refused.as_db_error().expect("the server says it").code().code(), "58P01");

    let target = bucket.url("outgoing/b.parquet");
    client
        .batch_execute(&format!(
            "COPY (SELECT * FROM b) TO '{target}' (FORMAT parquet); TRUNCATE a; COPY a FROM '{target}' (FORMAT parquet)"
        ))
        .await
        .expect("what was written is read");
    let row = client.query_one(same, &[]).await.expect("both have rows");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (30_000, 450_015_000));

    // Files are queried in place, also after they are rewritten.
    let folder = bucket.url("outgoing/");
    client
        .batch_execute(&format!("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{folder}'"))
        .await
        .expect("the bucket's folder is a table");
    let all = "SELECT count(*), sum(i) FROM c";
    for rows in [30_000_i64, 20_000] {
        client
            .batch_execute(&format!("COPY (SELECT * FROM b WHERE i <= {rows}) TO '{target}' (FORMAT parquet)"))
            .await
            .expect("the object is replaced");
        for _ in 0..2 {
            let row = client.query_one(all, &[]).await.expect("the object is there");
            assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (rows, rows * (rows + 1) / 2));
        }
    }
}

#[tokio::test]
async fn a_claim_on_a_bucket_survives_lost_answers() {
    let Some(server) = S3::start().await else { return };
    let (ours, theirs) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for fault in Fault::DETECTABLE {
        for request in 0..4 {
            let direct = server.open(&format!("{fault:?}/{request}"));
            let store = Arc::new(FaultStore::new(direct.store(), request));
            let prefix = direct.path_of("claimed").expect("a plain name");
            let clock = Arc::new(SystemClock::new());
            let faulty =
                Objects::new(Arc::clone(&store) as _, prefix, "s3://faulty", clock, Arc::new(SeededRandom::new(1)));
            store.fail_after(request, fault);
            let first = StorageClaim::acquire(&faulty, ours, "one").await.expect("the prefix is free");
            assert!(StorageClaim::acquire(&faulty, theirs, "two").await.is_err(), "{fault:?} at {request}: it is held");
            let second = StorageClaim::acquire(&faulty, ours, "one").await.expect("the holder comes back");
            assert_eq!((first.epoch(), second.epoch()), (1, 2), "{fault:?} at {request}");
            second.check_owned().await.expect("held");
        }
    }
}

#[tokio::test]
async fn a_bucket_that_is_not_there_and_a_wrong_secret_are_told() {
    let Some(server) = S3::start().await else { return };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let open = |url: &str, variables| {
        Objects::open_with(url, variables, Arc::clone(&clock), Arc::new(SystemRandom)).expect("the URL is right")
    };
    let absent = open("s3://absent/prefix", server.variables());
    let error = absent.put("a", Bytes::from("x")).await.expect_err("there is no such bucket");
    assert!(error.to_string().contains("s3://absent/prefix/a"), "{error}");

    let mut variables = server.variables();
    variables.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "wrong".to_owned()));
    let error = open(&server.url("p"), variables).get("a").await.expect_err("the secret is wrong");
    assert!(matches!(error, objects::Error::AccessDenied { .. }), "{error:?}");
}
