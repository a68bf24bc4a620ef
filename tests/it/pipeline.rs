//! Pipelines: messages up to Sync are one implicit transaction, which COMMIT and ROLLBACK end; a terminated session
//! gets one error. Kiln sends the same messages as PostgreSQL.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::postgres::Postgres;
use crate::server::Server;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Client that sends and reads raw protocol messages.
struct RawClient {
    stream: TcpStream,
    pid: i32,
}

impl RawClient {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut raw = Self { stream, pid: 0 };
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        body.extend_from_slice(b"user\0kiln\0database\0kiln\0client_min_messages\0notice\0\0");
        raw.write(None, &body);
        raw.until_ready();
        raw
    }

    fn write(&mut self, kind: Option<u8>, body: &[u8]) {
        let mut message: Vec<u8> = kind.into_iter().collect();
        let length = i32::try_from(body.len() + 4).expect("messages are small");
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message).expect("the server reads");
    }

    /// Sends Parse, Bind and Execute of a statement without parameters.
    fn execute(&mut self, sql: &str) {
        self.write(Some(b'P'), format!("\0{sql}\0\0\0").as_bytes());
        self.write(Some(b'B'), &[0; 8]);
        self.write(Some(b'E'), &[0; 5]);
    }

    fn query(&mut self, sql: &str) {
        self.write(Some(b'Q'), format!("{sql}\0").as_bytes());
    }

    /// Reads the next message; `None` at the end of the connection.
    fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).ok()?;
        if head[0] == b'K' {
            self.pid = i32::from_be_bytes(body[..4].try_into().expect("a process has a number"));
        }
        Some((head[0], body))
    }

    /// Reads messages up to ReadyForQuery or the end, and abbreviates each.
    fn until_ready(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some((kind, body)) = self.read() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
            match kind {
                b'C' => told.push(text(&body)),
                b'E' | b'N' => told.push(format!("{} {}", field(&body, b'V'), field(&body, b'C'))),
                b'Z' => {
                    told.push(format!("ready {}", text(&body)));
                    return told;
                }
                _ => {}
            }
        }
        told.push("closed".to_owned());
        told
    }
}

/// Returns a field of an error or a notice.
fn field(body: &[u8], wanted: u8) -> String {
    let fields = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&wanted));
    fields.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).unwrap_or_default()
}

const PIPELINES: [&[&str]; 12] = [
    &["INSERT INTO t VALUES (1)", "ROLLBACK"],
    &["INSERT INTO t VALUES (1)", "COMMIT", "SELECT 1/0"],
    &["INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)", "ROLLBACK", "INSERT INTO t VALUES (3)"],
    &["INSERT INTO t VALUES (1)", "SELECT 1/0", "COMMIT"],
    &["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", "INSERT INTO t VALUES (2)", "SELECT 1/0"],
    &["INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)", "ROLLBACK"],
    &["COMMIT"],
    &["ROLLBACK"],
    &["INSERT INTO t VALUES (1)", "COMMIT AND CHAIN"],
    &["INSERT INTO t VALUES (1)", "END", "ABORT"],
    &["ROLLBACK", "INSERT INTO t VALUES (1)"],
    &["SET search_path = public, pg_catalog", "INSERT INTO t VALUES (1)", "ROLLBACK", "INSERT INTO t VALUES (2)"],
];

async fn rows(client: &Client) -> Vec<i32> {
    let rows = client.query("SELECT a FROM t ORDER BY a", &[]).await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Sends each pipeline; returns its answers and the table's rows after it.
async fn transcripts(port: u16, client: &Client) -> Vec<(Vec<String>, Vec<i32>)> {
    client.batch_execute("CREATE TABLE t (a int)").await.expect("a table");
    let mut raw = RawClient::connect(port);
    let mut transcripts = Vec::new();
    for pipeline in PIPELINES {
        client.batch_execute("DELETE FROM t").await.expect("no rows are left");
        for sql in pipeline {
            raw.execute(sql);
        }
        raw.write(Some(b'S'), &[]);
        let mut told = raw.until_ready();
        if told.last().is_some_and(|last| last != "ready I") {
            raw.query("ROLLBACK");
            told.extend(raw.until_ready());
        }
        transcripts.push((told, rows(client).await));
    }
    transcripts
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_and_rollback_end_the_transaction_of_a_pipeline() {
    let server = Server::start();
    let found = transcripts(server.pg_port, &server.connect().await).await;
    let warned = |tag: &str| vec!["INSERT 0 1".to_owned(), "WARNING 25P01".to_owned(), tag.to_owned()];
    assert_eq!(found[0], ([warned("ROLLBACK"), vec!["ready I".to_owned()]].concat(), vec![]));
    let failed = vec!["ERROR 22012".to_owned(), "ready I".to_owned()];
    assert_eq!(found[1], ([warned("COMMIT"), failed].concat(), vec![1]));
    let Some(postgres) = Postgres::start() else {
        println!("skipped in part: PostgreSQL is not installed");
        return;
    };
    let wanted = transcripts(postgres.port, &postgres.connect().await).await;
    for ((pipeline, found), wanted) in PIPELINES.iter().zip(&found).zip(&wanted) {
        assert_eq!(found, wanted, "{pipeline:?}");
    }
}

/// Terminates a session that is idle or runs `sql`; returns the messages that it gets.
async fn terminate_session(port: u16, other: &Client, sql: Option<&str>) -> Vec<String> {
    let mut raw = RawClient::connect(port);
    if let Some(sql) = sql {
        raw.query(sql);
        let running = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active'";
        while other.query_one(running, &[&raw.pid]).await.expect("activity").get::<_, i64>(0) == 0 {
            SystemClock::new().sleep(Duration::from_millis(10)).await;
        }
    }
    other.execute("SELECT pg_terminate_backend($1::int)", &[&raw.pid]).await.expect("a session ends");
    tokio::task::block_in_place(|| raw.until_ready())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_terminated_is_told_once() {
    let server = Server::start();
    let client = server.connect().await;
    let once = ["FATAL 57P01", "closed"];
    assert_eq!(terminate_session(server.pg_port, &client, None).await, once);
    assert_eq!(terminate_session(server.pg_port, &client, Some("SELECT pg_sleep(60)")).await, once);
    assert_eq!(
        terminate_session(server.pg_port, &client, Some("BEGIN; SELECT pg_sleep(60)")).await,
        ["BEGIN", "FATAL 57P01", "closed"]
    );
    let Some(postgres) = Postgres::start() else { return };
    let client = postgres.connect().await;
    assert_eq!(terminate_session(postgres.port, &client, None).await, once);
    assert_eq!(terminate_session(postgres.port, &client, Some("SELECT pg_sleep(60)")).await, once);
}
