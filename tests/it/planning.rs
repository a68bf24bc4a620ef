//! Slow planning in one session: others connect, run statements and cancel meanwhile.

use std::fmt::Write;
use std::time::Duration;

use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::server::Server;

/// Time after which a statement hangs; generous for slow machines.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// Returns statements that are slow to parse or plan, each in another way.
fn long_texts() -> Vec<(&'static str, String)> {
    let nested = |open: &str, inner: &str, close: &str, depth| open.repeat(depth) + inner + &close.repeat(depth);
    let mut ors = "SELECT 1 WHERE 0 = 1".to_owned();
    let mut unions = "SELECT 0 AS n".to_owned();
    for number in 1..800 {
        write!(ors, " OR {number} = 0").expect("a string takes all");
    }
    for number in 1..150 {
        write!(unions, " UNION ALL SELECT {number}").expect("a string takes all");
    }
    vec![
        ("subqueries", format!("SELECT {}", nested("(SELECT ", "1", ")", 13))),
        ("EXISTS", format!("SELECT 1 WHERE {}", nested("EXISTS (SELECT 1 WHERE ", "true", ")", 11))),
        ("ORs", ors),
        ("unions", unions),
        ("statements", "SELECT 1;".repeat(5_000)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_the_text_of_another() {
    let server = Server::start_with(&["--threads", "2"], &[]);
    let onlooker = server.connect().await;
    let mut busy = Vec::new();
    let mut cancels = Vec::new();
    for (what, text) in long_texts() {
        // At least as many of each as there are threads of any kind.
        for _ in 0..4 {
            let client = server.connect().await;
            let text = text.clone();
            cancels.push(client.cancel_token());
            busy.push(tokio::spawn(async move { (what, client.batch_execute(&text).await) }));
        }
    }
    with_timeout("others", async {
        for _ in 0..50 {
            onlooker.batch_execute("SELECT 1").await.expect("others are answered");
        }
        for _ in 0..5 {
            server.connect().await.batch_execute("SELECT 1").await.expect("others connect");
        }
    })
    .await;
    for cancel in cancels {
        cancel.cancel_query(NoTls).await.expect("the server listens");
    }
    for task in busy {
        let (what, outcome) = with_timeout("cancelled", task).await.expect("it ends");
        if let Err(error) = outcome {
            let code = error.code();
            let is_expected = [&SqlState::QUERY_CANCELED, &SqlState::STATEMENT_TOO_COMPLEX].map(Some).contains(&code);
            assert!(is_expected, "{what}: {error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_statement_includes_its_planning() {
    let server = Server::start_with(&["--threads", "2"], &[]);
    let client = server.connect().await;
    client.batch_execute("SET statement_timeout = '50ms'").await.expect("it is a setting");
    let (_, text) = long_texts().swap_remove(2);
    let error = with_timeout("planned", client.batch_execute(&text)).await;
    if let Err(error) = error {
        let code = error.code();
        assert!([Some(&SqlState::QUERY_CANCELED), Some(&SqlState::STATEMENT_TOO_COMPLEX)].contains(&code), "{error:?}");
    }
    client.batch_execute("RESET statement_timeout; SELECT 1").await.expect("the session goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_large_is_not_made_to_plan() {
    let server = Server::start();
    let client = server.connect().await;
    for call in ["repeat('x', 500000000)", "lpad('x', 200000000)", "format('%900000000s', 'x')"] {
        let sql = format!("EXPLAIN (COSTS off) SELECT length({call})");
        with_timeout(call, client.batch_execute(&sql)).await.expect("it is planned");
    }
    let peak = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server runs");
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
    let peak_kb: u64 = peak.trim().trim_end_matches("kB").trim().parse().expect("it is a number");
    assert!(peak_kb < 400 << 10, "{peak_kb} kB");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_values_are_computed_where_they_can_be_cancelled() {
    let server = Server::start();
    let client = server.connect().await;
    client.batch_execute("SET statement_timeout = '10ms'").await.expect("it is a setting");
    // Writing that much takes longer everywhere. The size limit of lpad in PostgreSQL is a quarter of repeat's.
    for call in ["repeat('x', 500000000)", "lpad('x', 260000000)"] {
        let sql = format!("SELECT length({call})");
        let error = with_timeout(call, client.batch_execute(&sql)).await.expect_err("it takes longer");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
    }
    let sql = "SELECT length(repeat($1::text, $2::int))";
    let error = with_timeout(sql, client.query(sql, &[&"x", &500_000_000_i32])).await.expect_err("it takes longer");
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
}

async fn with_timeout<T>(what: &str, work: impl Future<Output = T>) -> T {
    let clock = SystemClock::new();
    tokio::select! {
        done = work => done,
        () = clock.sleep(HANG_TIMEOUT) => panic!("hangs: {what}"),
    }
}
