//! Memory limits: a slow client of a large result costs no memory; joins, aggregations, sorts and window functions
//! that exceed the memory spill.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use types::{Clock, SystemClock};

use crate::server::Server;

/// Rows of about a kilobyte: a gigabyte in total.
const ROWS: u64 = 1_000_000;
/// Memory that a running query may use beyond an idle server: batches in flight and buffers, far less than the
/// result.
const GROWTH_BYTES_MAX: u64 = 192 << 20;
/// Number of reads in the slow phase, each after a pause.
const SLOW_READS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_costs_no_memory() {
    // Memory of batches in flight grows with the threads, not with the result.
    let server = Server::start_with(&["--threads", "2"], &[]);
    let idle = resident_bytes(server.pid());
    let mut stream = TcpStream::connect(("127.0.0.1", server.pg_port)).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    stream.write_all(&startup()).expect("it listens");
    read_until_ready(&mut stream);
    let sql = format!("SELECT i, repeat('kiln', 250) FROM generate_series(1, {ROWS}) AS g(i)");
    stream.write_all(&query(&sql)).expect("it listens");

    let clock = SystemClock::new();
    let mut piece = vec![0; 1 << 16];
    let (mut received, mut peak) = (0_u64, 0);
    for _ in 0..SLOW_READS {
        received += stream.read(&mut piece).expect("rows come before the last is made") as u64;
        clock.sleep(Duration::from_millis(50)).await;
        peak = peak.max(resident_bytes(server.pid()));
    }
    // Then read as fast as possible until ReadyForQuery.
    let mut tail = Vec::new();
    while !tail.ends_with(&[b'Z', 0, 0, 0, 5, b'I']) {
        let count = stream.read(&mut piece).expect("rows keep coming");
        assert!(count > 0, "the connection stays open");
        tail.extend_from_slice(&piece[..count]);
        tail.drain(..tail.len().saturating_sub(6));
        let before = received;
        received += count as u64;
        if before >> 26 != received >> 26 {
            peak = peak.max(resident_bytes(server.pid()));
        }
    }
    assert!(received > ROWS * 1_000, "the whole result came: {received} bytes");
    let growth = peak.saturating_sub(idle);
    assert!(growth < GROWTH_BYTES_MAX, "{} MB more than idle for a result of {} MB", growth >> 20, received >> 20);
}

fn startup() -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    body.extend_from_slice(b"user\0kiln\0database\0kiln\0\0");
    let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
    message.extend(body);
    message
}

fn query(sql: &str) -> Vec<u8> {
    let mut message = vec![b'Q'];
    message.extend((sql.len() as u32 + 5).to_be_bytes());
    message.extend(sql.as_bytes());
    message.push(0);
    message
}

fn read_until_ready(stream: &mut TcpStream) {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).expect("the server greets");
        let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize - 4;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("messages are whole");
        if head[0] == b'Z' {
            return;
        }
    }
}

/// Returns the resident memory of a process, from `/proc`.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}

/// Far less than tables of a hundred thousand rows need; a fixed number of threads, since each has its own buffers.
const LITTLE: [&str; 6] = ["--memory-mb", "8", "--cache-memory-mb", "64", "--threads", "2"];

/// Queries whose joins or aggregations exceed [`LITTLE`].
const SPILLING: [&str; 6] = [
    "SELECT count(*), sum(a.n), sum(length(b.v)) FROM big a JOIN big b ON a.k = b.k AND a.n <> b.n",
    "SELECT count(*), count(o.v), sum(b.n) FROM big b LEFT JOIN other o ON o.k = b.n",
    "SELECT count(*), sum(n) FROM big b WHERE NOT EXISTS (SELECT 1 FROM other o WHERE o.v = b.v)",
    "SELECT count(*), sum(c), max(m) FROM (SELECT v, count(*) AS c, max(n) AS m FROM big GROUP BY v) AS s",
    "SELECT count(*), sum(d) FROM (SELECT k, count(DISTINCT v) AS d FROM big GROUP BY k) AS s",
    "SELECT count(*), sum(c) FROM (SELECT o.v, b.k, count(*) AS c FROM big b JOIN other o ON o.k = b.n GROUP BY GROUPING SETS ((1, 2), (1), (2))) AS s",
];

/// Joins whose build rows all have one key and exceed [`LITTLE`], of every join type; and NOT IN, whose answer
/// depends on all partitions.
const ONE_KEY: [&str; 9] = [
    "SELECT count(*), count(s.v), sum(b.n), sum(s.n) FROM same s JOIN big b ON s.k = b.k",
    "SELECT count(*), count(s.v), sum(b.n), sum(s.n) FROM big b LEFT JOIN same s ON s.k = b.k",
    "SELECT count(*), count(s.v), sum(b.n), sum(s.n) FROM big b LEFT JOIN same s ON s.k = b.k AND s.n % 1000 < b.n % 99",
    "SELECT count(*), count(s.v), sum(b.n), sum(s.n) FROM same s FULL JOIN big b ON s.k = b.k AND s.n > b.n",
    "SELECT count(*), sum(n) FROM big b WHERE EXISTS (SELECT FROM same s WHERE s.k = b.k AND s.n > b.n + 149990 AND s.v <> b.v)",
    "SELECT count(*), sum(n) FROM big b WHERE NOT EXISTS (SELECT FROM same s WHERE s.k = b.k AND s.n > b.n + 149990 AND s.v <> b.v)",
    "SELECT count(*), sum(n) FROM big b WHERE n % 5 = 0 OR EXISTS (SELECT FROM same s WHERE s.k = b.k AND s.n > b.n + 149990 AND s.v <> b.v)",
    "SELECT count(*), sum(n) FROM big b WHERE v NOT IN (SELECT v FROM other WHERE k > 1000)",
    "SELECT count(*), sum(n) FROM big b WHERE v NOT IN (SELECT nullif(v, 'value 1800') FROM other WHERE k > 1000)",
];

/// Queries whose sorts exceed [`LITTLE`].
const SORTED: [&str; 8] = [
    "SELECT n, k, v FROM big ORDER BY v DESC, n",
    "SELECT nullif(k % 7, 3) AS g, n, v FROM big ORDER BY 1 NULLS FIRST, v || n DESC",
    "SELECT count(*), sum(n), min(v), max(k) FROM (SELECT n, k, v FROM big ORDER BY k DESC, v, n LIMIT 200000) AS s",
    "SELECT n, v FROM big ORDER BY v, n LIMIT 10 OFFSET 250000",
    "SELECT count(*), sum(n * r), sum(c), sum(p), max(l) FROM (SELECT n, rank() OVER w AS r, count(*) OVER w AS c, lag(n) OVER w AS p, last_value(v) OVER w AS l FROM big WINDOW w AS (PARTITION BY k ORDER BY v)) AS s",
    "SELECT count(*), sum(n * r), sum(s), sum(p), sum(q) FROM (SELECT n, row_number() OVER w AS r, sum(k) OVER w AS s, lag(k, 3, -1) OVER w AS p, lead(k) OVER w AS q FROM big WINDOW w AS (ORDER BY v DESC, n)) AS s",
    "SELECT n, rank() OVER w, max(k) OVER w, first_value(n) OVER w FROM big WINDOW w AS (PARTITION BY n % 2 ORDER BY v, n) ORDER BY n % 2, v, n",
    "SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n DESC), sum(n) OVER (PARTITION BY k ORDER BY n DESC) FROM big ORDER BY k, n DESC",
];

/// Similar queries with 300 billion and 300 million rows, which are cancelled while they spill.
const ENDLESS: [&str; 2] = [
    "SELECT count(*), sum(a.n + g.i) FROM big a JOIN big b ON a.k = b.k AND a.n <> b.n CROSS JOIN generate_series(1, 1000000) AS g(i)",
    "SELECT count(*), max(v) FROM (SELECT v FROM big CROSS JOIN generate_series(1, 1000) AS g(i) ORDER BY v, n + i OFFSET 1) AS s",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_spills_and_has_the_same_answer() {
    let (plenty, little) = (Server::start(), Server::start_with(&LITTLE, &[]));
    let (wide, narrow) = (plenty.connect().await, little.connect().await);
    for client in [&wide, &narrow] {
        client
            .batch_execute(
                "CREATE TABLE big (n bigint, k bigint, v text);
                 INSERT INTO big SELECT i, i % 150000, 'value ' || i % 250000 FROM generate_series(1, 300000) AS g(i);
                 CREATE TABLE other (k bigint, v text);
                 INSERT INTO other SELECT i * 2, 'value ' || i * 3 FROM generate_series(1, 200000) AS g(i);
                 CREATE TABLE same (k bigint, n bigint, v text);
                 INSERT INTO same SELECT 7, i, 'value of its own ' || i FROM generate_series(1, 150000) AS g(i);
                 VACUUM big; VACUUM other; VACUUM same",
            )
            .await
            .expect("tables are made");
    }
    let hungry = SPILLING.into_iter().chain(ONE_KEY).map(|query| (query, "Spilled Parts"));
    for (query, spilled) in hungry.chain(SORTED.map(|query| (query, "Spilled Runs"))) {
        let expected = rows(&wide, query).await;
        let found = rows(&narrow, query).await;
        let differ = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(differ.map(|row| (&found[row], &expected[row])), None, "row {differ:?} of {query}");
        assert_eq!(found.len(), expected.len(), "{query}");
        let plan = rows(&narrow, &format!("EXPLAIN (ANALYZE) {query}")).await.concat();
        assert!(plan.contains("Engine: on") && plan.contains(spilled), "{query} had room:\n{plan}");
    }
    assert_eq!(files(&little.folder().join("spill")), 0, "nothing is left behind");

    // A cancelled query leaves no spill files either, and other queries continue.
    for endless in ENDLESS.repeat(4) {
        let cancel = narrow.cancel_token();
        let goes_away = async {
            wait_until(|| files(&little.folder().join("spill")) != 0, "nothing is spilled").await;
            cancel.cancel_query(NoTls).await.expect("it listens");
        };
        let (refused, ()) = tokio::join!(narrow.batch_execute(endless), goes_away);
        let error = refused.expect_err("it takes longer");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
        wait_until(|| files(&little.folder().join("spill")) == 0, "files stay").await;
    }
    for query in [SPILLING[0], SORTED[3]] {
        assert_eq!(rows(&narrow, query).await, rows(&wide, query).await);
    }
}

/// Waits until a condition is true.
async fn wait_until(condition: impl Fn() -> bool, or: &str) {
    let clock = SystemClock::new();
    while !condition() {
        assert!(clock.monotonic() < Duration::from_secs(300), "{or}");
        clock.sleep(Duration::from_millis(1)).await;
    }
}

/// Returns the values of the first column, or those of the only row.
async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| format!("{}\n", row.get(column).unwrap_or("NULL"))).collect())
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// Returns the number of files below a folder.
fn files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let count = |path: PathBuf| if path.is_dir() { files(&path) } else { 1 };
    entries.filter_map(|entry| Some(count(entry.ok()?.path()))).sum()
}
