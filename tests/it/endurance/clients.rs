//! Well-behaved clients: small queries with known answers, some after a new login, and the latency of `SELECT 1`.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::Client;
use types::{Clock, SystemClock};

use super::session;
use crate::server::Server;

/// Time after which an answer is considered never to come.
const HANGING: Duration = Duration::from_secs(120);
/// Pause of each client between rounds, so that clients cause little load.
const PAUSE: Duration = Duration::from_millis(20);
/// One round in this many begins with a new login.
const LOGIN_EVERY: u64 = 20;

/// Answers that a client received.
#[derive(Debug, Default)]
pub(super) struct ClientAnswers {
    pub(super) answered: u64,
    pub(super) longest: Duration,
}

/// Runs queries until `is_over`; each client updates a row of its own, whose value is thus known.
pub(super) async fn run_client(port: u16, number: u64, is_on_workers: bool, is_over: Arc<AtomicBool>) -> ClientAnswers {
    let clock = SystemClock::new();
    let mut client = session(port, "kiln", is_on_workers).await;
    let mut told = ClientAnswers::default();
    let mut added = 0;
    while !is_over.load(Ordering::Relaxed) {
        if told.answered % LOGIN_EVERY == LOGIN_EVERY - 1 {
            client = tokio::select! {
                client = session(port, "kiln", is_on_workers) => client,
                () = clock.sleep(HANGING) => panic!("a login hangs"),
            };
        }
        let asked = clock.monotonic();
        assert_eq!(number_of(&client, &clock, "SELECT 1").await, 1);
        told.longest = told.longest.max(clock.monotonic() - asked);
        let id = number + 1;
        let updated = format!("UPDATE small SET v = v + 1 WHERE id = {id} RETURNING v::bigint");
        added += 1;
        assert_eq!(number_of(&client, &clock, &updated).await, added);
        let read = format!("SELECT v::bigint FROM small WHERE id = {id}");
        assert_eq!(number_of(&client, &clock, &read).await, added);
        assert_eq!(number_of(&client, &clock, "SELECT count(*) FROM small").await, 100);
        if number == 0 {
            let sum = "SELECT sum(n)::bigint FROM (SELECT k, count(*) AS n FROM big GROUP BY k) AS s";
            assert_eq!(number_of(&client, &clock, sum).await, 200_000);
        }
        told.answered += 1;
        clock.sleep(PAUSE).await;
    }
    told
}

/// Returns the single value of a query as a bigint.
async fn number_of(client: &Client, clock: &SystemClock, sql: &str) -> i64 {
    let answer = tokio::select! {
        answer = client.simple_query(sql) => answer.unwrap_or_else(|error| panic!("{sql}: {error:?}")),
        () = clock.sleep(HANGING) => panic!("{sql} hangs"),
    };
    let value = answer.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{sql} has one number"))
}

/// Opens HTTP requests that send their first line and never end.
pub(super) fn half_requests(server: &Server, count: usize) -> Vec<TcpStream> {
    let half_request = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.http_port)).expect("the port is open");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").expect("it listens");
        stream
    };
    (0..count).map(half_request).collect()
}
