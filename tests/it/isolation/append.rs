//! Random concurrent transactions that append to lists and read them; the recorded history goes to the checker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use super::check::{Anomaly, FoundAnomaly, Level, check};
use super::history::{Op, TransactionEnd, Txn};
use super::proof::is_proven;
use crate::postgres::Postgres;
use crate::server::{Server, nightly};

/// Number of clients, and of lists in use at any time: few, so that transactions conflict.
const CLIENTS: usize = 8;
const KEYS: u32 = 4;
/// Transactions after which clients switch to other lists, before these get long.
const EPOCH: u64 = 150;
/// Total number of lists.
const LISTS: u32 = 600;
/// Maximum number of operations per transaction.
const OPS_MAX: u64 = 4;

/// Transactions of an ordinary run and of a nightly one.
const TRANSACTIONS: u64 = 600;
const TRANSACTIONS_NIGHTLY: u64 = 15_000;
/// Time after which a run without kills ends early.
const TIME_MAX: Duration = Duration::from_secs(40);

/// Number of kills, and the longest life of a server between them.
const KILLS: usize = 4;
const KILLS_NIGHTLY: usize = 40;
const LIFE_MAX_MS: u64 = 1_500;

/// Time after which a statement is considered unanswered: the server is gone or hangs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

const LEVELS: [(&str, Level); 3] = [
    ("read committed", Level::ReadCommitted),
    ("repeatable read", Level::RepeatableRead),
    ("serializable", Level::Serializable),
];

#[tokio::test(flavor = "multi_thread")]
async fn histories_of_appends_are_what_each_level_allows_on_postgres() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    for (level, promised) in LEVELS {
        create(&postgres.connect().await).await;
        let history = run(postgres.port, level, transactions(), &AtomicBool::new(false)).await;
        assert_no_false_alarm(&history, promised, level);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_of_appends_are_what_each_level_allows_on_kiln() {
    let server = Server::start();
    for (level, promised) in LEVELS {
        create(&server.connect().await).await;
        let history = run(server.pg_port, level, transactions(), &AtomicBool::new(false)).await;
        assert_allowed(&history, promised, level);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_of_appends_survive_kills() {
    let folder = TempDir::with_prefix("kiln-append-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &[]);
    let clock = SystemClock::new();
    let random = SeededRandom::new(0xA99E);
    for (level, promised) in LEVELS {
        create(&server.connect().await).await;
        let mut history = Vec::new();
        let kills = if nightly() { KILLS_NIGHTLY } else { KILLS };
        for _ in 0..kills {
            let killed = Arc::new(AtomicBool::new(false));
            let clients = tokio::spawn({
                let (killed, port) = (Arc::clone(&killed), server.pg_port);
                async move { run(port, level, u64::MAX, &killed).await }
            });
            clock.sleep(Duration::from_millis(below(&random, LIFE_MAX_MS))).await;
            server.kill();
            killed.store(true, Ordering::Release);
            history.extend(clients.await.expect("clients do not panic"));
            server = Server::start_on(folder.path(), &[]);
        }
        history.push(read_all(&server.connect().await).await);
        assert_allowed(&history, promised, level);
    }
}

fn transactions() -> u64 {
    if nightly() { TRANSACTIONS_NIGHTLY } else { TRANSACTIONS }
}

/// Asserts on PostgreSQL, the control, that the checker reports no anomaly that is not there.
///
/// PostgreSQL itself has shown a G2 at SERIALIZABLE (15.18, in one of our runs; 18.4 in "Possible G2-item at
/// SERIALIZABLE", pgsql-bugs, 2026): such a cycle has to be proven without the checker's graph.
fn assert_no_false_alarm(history: &[Txn], promised: Level, level: &str) {
    for (anomaly, cycle) in check(history, promised) {
        if anomaly == Anomaly::G2 && is_proven(history, &cycle) {
            println!("PostgreSQL's own, at {level}: {}", describe_anomaly(history, anomaly, &cycle));
            return assert_allowed(history, Level::RepeatableRead, level);
        }
    }
    assert_allowed(history, promised, level);
}

fn assert_allowed(history: &[Txn], promised: Level, level: &str) {
    let count = |end| history.iter().filter(|txn| txn.end == end).count();
    let (committed, aborted, unknown) =
        (count(TransactionEnd::Committed), count(TransactionEnd::Aborted), count(TransactionEnd::Unknown));
    println!("{level}: {committed} committed, {aborted} aborted, {unknown} in doubt");
    assert!(committed > CLIENTS, "{level}: the clients come to do something: {committed} transactions");
    let found: Vec<FoundAnomaly> = check(history, promised);
    let shown: Vec<String> = found.iter().map(|(anomaly, txns)| describe_anomaly(history, *anomaly, txns)).collect();
    assert!(found.is_empty(), "{level} forbids what {} transactions show:\n{}", history.len(), shown.join("\n"));
}

fn describe_anomaly(history: &[Txn], anomaly: Anomaly, txns: &[usize]) -> String {
    let told: Vec<String> = txns.iter().map(|txn| format!("    {txn}: {:?}", history[*txn])).collect();
    format!("{anomaly:?}\n{}", told.join("\n"))
}

async fn create(client: &Client) {
    let rows: Vec<String> = (0..LISTS).map(|key| format!("({key}, '{{}}')")).collect();
    let table = format!(
        "DROP TABLE IF EXISTS lists; CREATE TABLE lists (id int PRIMARY KEY, list int[]); INSERT INTO lists VALUES {}",
        rows.join(", ")
    );
    client.batch_execute(&table).await.expect("the table can be made");
}

/// Runs the clients until `transactions` are done or the server is killed; without a kill a final read of all lists
/// follows.
async fn run(port: u16, level: &'static str, transactions: u64, killed: &AtomicBool) -> Vec<Txn> {
    let started = AtomicU64::new(0);
    let clock = SystemClock::new();
    let (started, clock) = (&started, &clock);
    let clients = (0..CLIENTS).map(|number| async move {
        let random = SeededRandom::new(number as u64 ^ next_seed());
        let mut done = Vec::new();
        let Some(client) = connect(port).await else { return done };
        while !killed.load(Ordering::Acquire) {
            let number = started.fetch_add(1, Ordering::Relaxed);
            if number >= transactions {
                break;
            }
            if transactions < u64::MAX && TIME_MAX < clock.monotonic() {
                break;
            }
            let (txn, is_alive) = transaction(&client, level, (number / EPOCH) as u32, &random).await;
            done.push(txn);
            if !is_alive {
                break;
            }
        }
        done
    });
    let mut history: Vec<Txn> = join_all(clients).await.into_iter().flatten().collect();
    if transactions < u64::MAX {
        let client = connect(port).await.expect("the server still answers");
        history.push(read_all(&client).await);
    }
    history
}

async fn connect(port: u16) -> Option<Client> {
    let address = format!("host=127.0.0.1 port={port} user=kiln dbname=kiln");
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.ok()?;
    tokio::spawn(connection);
    Some(client)
}

/// Runs one transaction; returns false if the connection is gone.
async fn transaction(client: &Client, level: &str, epoch: u32, random: &SeededRandom) -> (Txn, bool) {
    let mut txn = Txn { ops: Vec::new(), end: TransactionEnd::Aborted };
    if let Err(error) = ask(client, &format!("BEGIN ISOLATION LEVEL {level}")).await {
        return (txn, is_alive(client, &error).await);
    }
    for _ in 0..=below(random, OPS_MAX - 1) {
        let key = (epoch * KEYS + below(random, u64::from(KEYS)) as u32) % LISTS;
        let outcome = if below(random, 2) == 0 {
            let value = next_value();
            // Recorded before the outcome is known: even aborted appends may be seen by others.
            txn.ops.push(Op::Append { key, value });
            ask(client, &format!("UPDATE lists SET list = list || {value} WHERE id = {key}")).await.map(drop)
        } else {
            let list = ask(client, &format!("SELECT list FROM lists WHERE id = {key}")).await;
            list.map(|list| txn.ops.push(Op::Read { key, list: parse(&list) }))
        };
        if let Err(error) = outcome {
            return (txn, is_alive(client, &error).await);
        }
    }
    match ask(client, "COMMIT").await {
        Ok(_) => {
            txn.end = TransactionEnd::Committed;
            (txn, true)
        }
        Err(MissingAnswer::SqlState(state)) => {
            assert_retryable(&state);
            (txn, true)
        }
        Err(MissingAnswer::Gone) => {
            txn.end = TransactionEnd::Unknown;
            (txn, false)
        }
    }
}

/// Reason for a missing answer.
enum MissingAnswer {
    /// SQLSTATE that the server returned.
    SqlState(String),
    Gone,
}

/// Returns the first value of the answer, empty without rows.
async fn ask(client: &Client, sql: &str) -> Result<String, MissingAnswer> {
    let clock = SystemClock::new();
    let answer = tokio::select! {
        answer = client.simple_query(sql) => answer,
        () = clock.sleep(ANSWER_TIME_MAX) => panic!("no answer to {sql}"),
    };
    match answer {
        Err(error) => {
            Err(error.code().map_or(MissingAnswer::Gone, |code| MissingAnswer::SqlState(code.code().to_owned())))
        }
        Ok(messages) => {
            let value = messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            Ok(value.unwrap_or_default())
        }
    }
}

/// Rolls back the failed transaction; false if the connection is gone.
async fn is_alive(client: &Client, failure: &MissingAnswer) -> bool {
    match failure {
        MissingAnswer::Gone => false,
        MissingAnswer::SqlState(state) => {
            assert_retryable(state);
            ask(client, "ROLLBACK").await.is_ok()
        }
    }
}

/// Asserts that the error is a conflict or the shutdown of the server.
fn assert_retryable(state: &str) {
    assert!(matches!(state, "40001" | "40P01" | "57P01"), "a transaction failed with {state}");
}

async fn read_all(client: &Client) -> Txn {
    let mut ops = Vec::new();
    for key in 0..LISTS {
        let Ok(list) = ask(client, &format!("SELECT list FROM lists WHERE id = {key}")).await else {
            panic!("the lists can be read")
        };
        ops.push(Op::Read { key, list: parse(&list) });
    }
    Txn { ops, end: TransactionEnd::Committed }
}

/// Parses `{1,2,3}`.
fn parse(list: &str) -> Vec<u64> {
    let numbers = list.trim_matches(['{', '}']).split(',').filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().expect("a list has numbers")).collect()
}

fn below(random: &SeededRandom, end: u64) -> u64 {
    random.next_u64() % end
}

/// Returns a value that is unique in the test process.
fn next_value() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn next_seed() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(0x9E37, Ordering::Relaxed)
}
