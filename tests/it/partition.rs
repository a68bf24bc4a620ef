//! Network partitions: workers on separate hosts lose their connections to the server, to each other, or in one
//! direction, while queries run, and come back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bench::result_comparison::{self, Row};
use bench::{Suite, query_benchmark};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};
use types::{Clock, SystemClock};

use crate::cluster::wait_until;
use crate::cluster_kill::{LOST_WORKER_STATES, ON_WORKERS, THREE_READY, load_with_cluster};
use crate::network::Endpoint::{self, Host, ThisMachine};
use crate::network::Network;
use crate::server::{Server, nightly};

/// Number of workers, each on its own host.
const WORKERS: u8 = 3;
/// Number of sessions that run queries meanwhile.
const CLIENTS: usize = 3;
/// Repetitions of all cuts in a nightly run.
const ROUNDS_NIGHTLY: usize = 5;
/// Longest time of a statement: it waits until a connection is known to be dead, is retried, and may lose another
/// worker.
const STATEMENT_MAX: Duration = Duration::from_secs(60);
/// Time after which a cancel request hangs.
const CANCEL_MAX: Duration = Duration::from_secs(60);
/// Longest time of a statement that avoids an unreachable worker: shorter than the detection of a dead connection, or
/// [`WITHOUT_IT_TIMES`] times its earlier time on a slow machine.
const WITHOUT_IT: Duration = Duration::from_secs(10);
const WITHOUT_IT_TIMES: u32 = 5;
/// Time after which a condition is considered never to become true.
const PATIENCE: Duration = Duration::from_secs(180);
const ALL_HEALTHY: &str = "SELECT count(*) = 3 FROM sys.worker WHERE cluster = 'hit' AND state = 'ready' AND NOT hung AND address IS NOT NULL";
const ENDLESS: &str =
    "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_orderkey + b.l_partkey + c.l_suppkey = -1";

/// Network cut around one worker, and its duration.
struct Cut {
    name: &'static str,
    ways: Vec<(Endpoint, Endpoint)>,
    victims: Vec<u8>,
    until: ExpectedRecovery,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedRecovery {
    /// The worker is excluded, statements continue without it, and the same worker comes back.
    Excluded,
    /// A new worker replaces it.
    Replaced,
}

/// Returns all kinds of cuts, one of them long; in nightly runs each is long.
fn cuts(round: usize) -> Vec<Cut> {
    let both = |one, other| [(one, other), (other, one)];
    let all_of = |number: u8| {
        let others = (0..WORKERS).filter(move |other| *other != number).map(Host);
        std::iter::once(ThisMachine).chain(others).flat_map(move |other| both(Host(number), other)).collect::<Vec<_>>()
    };
    let until = if round == 0 { ExpectedRecovery::Excluded } else { ExpectedRecovery::Replaced };
    vec![
        Cut { name: "a host from all others", ways: all_of(0), victims: vec![0], until },
        Cut { name: "what is sent to a worker", ways: vec![(ThisMachine, Host(1))], victims: vec![1], until },
        Cut { name: "what a worker sends", ways: vec![(Host(2), ThisMachine)], victims: vec![2], until },
        Cut {
            name: "two workers from each other",
            ways: both(Host(0), Host(1)).to_vec(),
            victims: vec![0, 1],
            until: ExpectedRecovery::Excluded,
        },
        Cut { name: "a host for long", ways: all_of(1), victims: vec![1], until: ExpectedRecovery::Replaced },
    ]
}

/// Counts of the sessions' answers so far.
#[derive(Debug, Default)]
struct AnswerCounts {
    right: AtomicUsize,
    lost: AtomicUsize,
    longest_ms: AtomicUsize,
    is_over: AtomicBool,
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_are_cut_off_are_left_out_and_come_back() {
    let network = match Network::new(WORKERS) {
        Ok(network) => network,
        Err(why) => return println!("skipped: no network of namespaces can be made here: {why}"),
    };
    let (door, launcher) = (network.address(ThisMachine).to_string(), network.launcher());
    let options = ["--worker-door", &door, "--worker-launcher", &launcher, "--worker-backoff", "1"];
    let server = Server::start_with(&options, &[]);
    let boss = load_with_cluster(&server).await;
    check_addresses(&boss, &network).await;
    let mut known = BTreeMap::new();
    for (at, sql) in Suite::Tpch.queries().iter().enumerate().filter(|(_, sql)| !sql.contains("CREATE")) {
        known.insert(at + 1, (*sql, query_benchmark::run_query(&boss, sql).await.expect("each query has an answer")));
    }
    let (known, told, mut sessions) = (Arc::new(known), Arc::new(AnswerCounts::default()), Vec::new());
    for number in 0..CLIENTS {
        let client = on_workers(&server).await;
        sessions.push(tokio::spawn(run_queries(client, Arc::clone(&known), number * 7, Arc::clone(&told))));
    }
    let mut made = 0;
    for round in 0..if nightly() { ROUNDS_NIGHTLY } else { 1 } {
        for cut in cuts(round) {
            made += 1;
            check_cut(&cut, &network, &server, &boss).await;
        }
    }
    told.is_over.store(true, Ordering::Relaxed);
    let mut wrong = Vec::new();
    for session in sessions {
        wrong.extend(session.await.expect("a session does not panic"));
    }
    let (right, lost) = (told.right.load(Ordering::Relaxed), told.lost.load(Ordering::Relaxed));
    println!(
        "{right} statements were answered, {lost} told of lost workers, the longest took {:?} ms",
        told.longest_ms
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A slow machine answers few statements, so each cut may hit one per session.
    assert!(lost * 20 <= right || lost <= made * CLIENTS, "of {right} answered statements {lost} were lost");
    // Nothing is still running for the lost connections.
    wait_until(&boss, "SELECT sum(running) = 0 FROM sys.worker WHERE cluster = 'hit'").await;
}

/// Makes a cut, and checks which workers are excluded, that statements continue, and that all workers are back
/// afterwards.
async fn check_cut(cut: &Cut, network: &Network, server: &Server, boss: &Client) {
    let clock = SystemClock::new();
    let (name, begun) = (cut.name, clock.monotonic());
    let before = workers(boss).await;
    let asked = clock.monotonic();
    query_benchmark::run_query(&on_workers(server).await, Suite::Tpch.queries()[0]).await.expect("all are there");
    let without_it = WITHOUT_IT.max(WITHOUT_IT_TIMES * (clock.monotonic() - asked));
    let since = text(boss, "SELECT clock_timestamp()::text").await;
    let happened = |what: &str| {
        let victims: Vec<String> = cut.victims.iter().map(|slot| format!("detail LIKE '%in slot {slot}%'")).collect();
        let of_victim = victims.join(" OR ");
        format!(
            "SELECT 0 < count(*) FROM sys.cluster_event WHERE cluster = 'hit' AND at > '{since}'::timestamptz \
             AND what = '{what}' AND ({of_victim})"
        )
    };
    cut.ways.iter().for_each(|(from, to)| network.cut(*from, *to));
    check_cancel(server, name).await;
    wait_until_true(boss, &happened("worker_hung"), name).await;
    let found = clock.monotonic() - begun;
    let hung =
        text(boss, "SELECT count(*)::text FROM sys.worker WHERE cluster = 'hit' AND hung AND state = 'ready'").await;
    // New statements do not wait for the worker.
    let asked = clock.monotonic();
    query_benchmark::run_query(&on_workers(server).await, Suite::Tpch.queries()[0]).await.expect("others are there");
    let took = clock.monotonic() - asked;
    assert!(took < without_it, "{name}: a statement took {took:?} when it was left out");
    if cut.until == ExpectedRecovery::Replaced {
        wait_until_true(boss, &happened("worker_failed"), name).await;
        wait_until_true(boss, &happened("worker_starting"), name).await;
    }
    network.heal();
    let healed = clock.monotonic();
    wait_until_true(boss, ALL_HEALTHY, name).await;
    let told_back = if cut.until == ExpectedRecovery::Replaced { "worker_ready" } else { "worker_recovered" };
    wait_until_true(boss, &happened(told_back), name).await;
    let back = clock.monotonic() - healed;
    println!("{name}: found after {found:?} ({hung} left out), all well {back:?} after it was over");
    let after = workers(boss).await;
    let is_same = |slot: &u8| before.get(slot) == after.get(slot);
    match cut.until {
        ExpectedRecovery::Excluded => {
            assert!((0..WORKERS).all(|slot| is_same(&slot)), "{name}: {before:?}, then {after:?}")
        }
        ExpectedRecovery::Replaced => {
            assert!(cut.victims.iter().all(|slot| !is_same(slot)), "{name}: {before:?}, then {after:?}");
        }
    }
    check_use(server, name).await;
}

/// Checks that a statement waiting for an unreachable worker ends when it is cancelled.
async fn check_cancel(server: &Server, name: &str) {
    let (client, clock) = (on_workers(server).await, SystemClock::new());
    let cancel = client.cancel_token();
    let (ended, cancelled) = tokio::join!(
        async {
            let ended = client.query(ENDLESS, &[]).await;
            (ended, clock.monotonic())
        },
        async {
            clock.sleep(Duration::from_millis(700)).await;
            cancel.cancel_query(NoTls).await.expect("the server listens");
            clock.monotonic()
        }
    );
    let (ended, at) = (ended.0.expect_err("it never ends by itself"), ended.1);
    assert_eq!(ended.code(), Some(&SqlState::QUERY_CANCELED), "{name}: {ended:?}");
    let took = at.saturating_sub(cancelled);
    println!("{name}: a cancel took {took:?}");
    assert!(took < CANCEL_MAX, "{name}: a cancel took {took:?}");
}

/// Checks that all workers run statements again.
async fn check_use(server: &Server, name: &str) {
    let (client, clock) = (on_workers(server).await, SystemClock::new());
    let begun = clock.monotonic();
    let explain = format!("EXPLAIN (ANALYZE) {}", Suite::Tpch.queries()[0]);
    loop {
        match query_benchmark::run_query(&client, &explain).await {
            Ok(plan) if plan.iter().flatten().flatten().any(|line| line == "Runs: on 3 workers") => return,
            // A worker without a connection yet is excluded again.
            ran => assert!(clock.monotonic() - begun < PATIENCE, "{name}: {ran:?}"),
        }
        clock.sleep(Duration::from_millis(100)).await;
    }
}

/// Checks that each worker has the address of its host.
async fn check_addresses(boss: &Client, network: &Network) {
    let sql = "SELECT slot, address FROM sys.worker WHERE cluster = 'hit' AND state = 'ready' ORDER BY slot";
    let rows = boss.query(sql, &[]).await.expect("workers are shown");
    for (slot, row) in (0..WORKERS).zip(&rows) {
        let (own, address) = (row.get::<_, i32>(0), row.get::<_, &str>(1));
        assert_eq!(own, i32::from(slot));
        assert!(address.starts_with(&format!("{}:", network.address(Host(slot)))), "{slot}: {address}");
    }
    assert_eq!(rows.len(), usize::from(WORKERS));
}

/// Runs queries one after the other, starting with number `first`; returns wrong answers.
async fn run_queries(
    client: Client,
    known: Arc<BTreeMap<usize, (&'static str, Vec<Row>)>>,
    first: usize,
    told: Arc<AnswerCounts>,
) -> Vec<String> {
    let (mut wrong, clock) = (Vec::new(), SystemClock::new());
    for (number, (sql, expected)) in known.iter().cycle().skip(first) {
        if told.is_over.load(Ordering::Relaxed) {
            break;
        }
        let begun = clock.monotonic();
        let answer = tokio::select! {
            answer = query_benchmark::run_query(&client, sql) => answer,
            () = clock.sleep(STATEMENT_MAX) => {
                wrong.push(format!("q{number:02}: no answer after {STATEMENT_MAX:?}"));
                break;
            }
        };
        let took = usize::try_from((clock.monotonic() - begun).as_millis()).unwrap_or(usize::MAX);
        told.longest_ms.fetch_max(took, Ordering::Relaxed);
        match answer {
            Ok(found) => match result_comparison::compare(expected, &found) {
                Ok(()) => drop(told.right.fetch_add(1, Ordering::Relaxed)),
                Err(difference) => wrong.push(format!("q{number:02}: {difference}")),
            },
            Err(error) => match error.as_db_error() {
                Some(db) if LOST_WORKER_STATES.contains(&db.code().code()) && db.hint().is_some() => {
                    told.lost.fetch_add(1, Ordering::Relaxed);
                }
                _ => wrong.push(format!("q{number:02} after {took} ms: {error:?}")),
            },
        }
    }
    wrong
}

async fn on_workers(server: &Server) -> Client {
    let client = server.connect().await;
    client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
    client
}

/// Returns the workers by slot.
async fn workers(boss: &Client) -> BTreeMap<u8, String> {
    wait_until(boss, THREE_READY).await;
    let sql = "SELECT slot, worker FROM sys.worker WHERE cluster = 'hit' AND state = 'ready'";
    let rows = boss.query(sql, &[]).await.expect("workers are shown");
    rows.iter().map(|row| (u8::try_from(row.get::<_, i32>(0)).expect("there are few"), row.get(1))).collect()
}

async fn text(boss: &Client, sql: &str) -> String {
    boss.query_one(sql, &[]).await.expect("it is asked").get(0)
}

/// Waits until the single value that a query returns is true.
async fn wait_until_true(boss: &Client, sql: &str, name: &str) {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    while !boss.query_one(sql, &[]).await.expect("the server is there").get::<_, bool>(0) {
        assert!(clock.monotonic() - begun < PATIENCE, "{name}: not within {PATIENCE:?}: {sql}");
        clock.sleep(Duration::from_millis(50)).await;
    }
}
